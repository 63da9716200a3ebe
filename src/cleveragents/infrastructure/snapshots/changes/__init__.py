"""Which paths of a tree may have changed: four ways to know.

Those a step has declared; a watch (`watcher`); a full scan, by walking or by comparing listings
(`full_scan`, `listing`); and git over a stat index (`stat_index`, which says when a file may be
skipped, and why). What makes a single path unchanged is a rule of `files/entry.py`.
"""
