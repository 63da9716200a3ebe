"""SQLite over databases that a step could have written: in a process that is held inside.

`inside*.py` run there and import next to nothing; `worker.py` is our side of the talk.
"""
