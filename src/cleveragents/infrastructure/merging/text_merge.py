"""Merging three versions of one text, with the tool that people trust for it."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from cleveragents.domain.errors import SandboxError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.merging.path_merge import MergeText
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.inside import GitInside, InsideSession, View

_MOST_CONFLICTS = 127
# No settings of the user's: the same three texts give the same result everywhere.
_NO_SETTINGS = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


class TextMerge:
    """`git merge-file`, which needs no repository; raw bytes go in and come out."""

    def __init__(self, inside: GitInside) -> None:
        self._inside = inside

    @contextmanager
    def opened(self, parent: PlanResource) -> Generator[MergeText]:
        """A merge of texts that steps of this plan have written."""
        view = View(
            confinement=parent.confinement, plan_id=parent.plan_id, folder=parent.sandbox_path
        )
        with self._inside.opened(view) as inside:
            yield lambda base, ours, theirs: _merged(inside, (base, ours, theirs))


def _merged(inside: InsideSession, texts: tuple[bytes, bytes, bytes]) -> bytes | None:
    """None if both changed the same lines."""
    for name, data in zip(("base", "ours", "theirs"), texts, strict=True):
        (inside.told / name).write_bytes(data)
    git = Git(str(inside.told), {**_NO_SETTINGS, "GIT_DIR": os.devnull}, inside.start)
    done = git.run("merge-file", "--stdout", "ours", "base", "theirs", check=False)
    if done.code == 0:
        return done.stdout
    if done.code <= _MOST_CONFLICTS:
        return None
    raise SandboxError(
        f"git merge-file failed: {done.stderr.decode('utf-8', 'backslashreplace').strip()}",
        "check that git works and that there is room on the disk",
    )
