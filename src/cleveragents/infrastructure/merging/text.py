"""Owns merging three versions of one text, with the tool that people trust for it."""

import os
import tempfile

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.sandbox.git import Git

_MOST_CONFLICTS = 127


class TextMerge:
    """`git merge-file`, which needs no repository; raw bytes go in and come out."""

    def __init__(self, scratch_dir: str) -> None:
        self._scratch = scratch_dir

    def __call__(self, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        """None if both changed the same lines."""
        os.makedirs(self._scratch, mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="merge-") as folder:
            for name, data in (("base", base), ("ours", ours), ("theirs", theirs)):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(data)
            # No settings of the user's: the same three texts give the same result everywhere.
            done = Git(folder, {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}).run(
                "merge-file", "--stdout", "ours", "base", "theirs", check=False
            )
        if done.code == 0:
            return done.stdout
        if done.code <= _MOST_CONFLICTS:
            return None
        raise SandboxError(
            f"git merge-file failed: {done.stderr.decode('utf-8', 'backslashreplace').strip()}",
            "check that git works and that there is room on the disk",
        )
