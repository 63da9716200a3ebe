"""A program for tests: chains of processes, each link gone as soon as the next one is there, in a
session of its own. `chains.py HOW_MANY SECONDS FILE WORD`: links that live on after the seconds
write to the file. Nothing multiplies, and all is over after a while, whatever happens."""

import os
import pathlib
import sys
import time

LONGEST = 25


def chain(late: float, end: float, file: pathlib.Path) -> None:
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        os.setsid()
        if time.monotonic() > late:
            with file.open("a", encoding="utf-8") as late_words:
                late_words.write("late\n")
    os._exit(0)


def main() -> None:
    now = time.monotonic()
    for _ in range(int(sys.argv[1])):
        if os.fork() == 0:
            os.setsid()
            chain(now + float(sys.argv[2]), now + LONGEST, pathlib.Path(sys.argv[3]))


if __name__ == "__main__":
    main()
