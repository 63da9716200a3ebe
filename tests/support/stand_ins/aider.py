"""Stands in for aider: it edits, and commits past the hooks that could refuse."""

import subprocess

from tests.support.stand_ins.calls import shell, write


def commit(name):
    subprocess.run(["git", "add", name], check=True)
    subprocess.run(["git", "commit", "-q", "--no-verify", "-m", f"feat: {name}"], check=True)


write()
commit("file_a.txt")
shell()
commit("shell_a.txt")
