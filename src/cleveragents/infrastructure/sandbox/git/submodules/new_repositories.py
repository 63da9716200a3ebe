"""Repositories of submodules that a plan has added: made beside, and moved to their place.

They are complete before an apply begins, in a folder of ours in the user's git folder; one rename
brings each to where git looks for it, and one takes it back.
"""

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.domain.ids import ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.apply.bring import Bringing
from cleveragents.infrastructure.sandbox.git.apply.token import NewRepository
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.pins import applied_pin, pin

# Where git itself would fetch from without asking; a relative address is resolved by git.
_ADDRESS = re.compile(r"(?:(?:https?|ssh|git|file)://|/|[\w.-]+@[\w.-]+:)[^\x00-\x20]+")


class Content(Struct, frozen=True, kw_only=True):
    """What a new repository is to hold: a commit with all that belongs to it."""

    commit: str
    pack: Path
    shallow: bytes
    address: str


class Workshop:
    """The folder in which they are made; it goes when the apply is settled, or not to be."""

    def __init__(self, resource: PlanResource) -> None:
        self._resource = resource
        git_dir = Git(resource.location).text("rev-parse", "--absolute-git-dir")
        self._path = Path(git_dir, f"cleveragents-modules-{resource.resource_id}")

    def clear(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)

    def place(self, number: int) -> str:
        return str(self._path / str(number))

    def make(self, over: Bringing, place: str, folder: str, content: Content) -> None:
        """A repository whose files are to be at `folder`, once it has come to its place."""
        made = Path(place)
        made.mkdir(mode=0o700, parents=True)
        outside = Git(self._resource.location)
        format_ = outside.text("rev-parse", "--show-object-format")
        args = ("init", "-q", "--bare", "--template=", f"--object-format={format_}", str(made))
        outside.run(*args)
        git = Git(str(made), {"GIT_DIR": str(made), "GIT_WORK_TREE": str(made)})
        if content.shallow:
            (made / "shallow").write_bytes(content.shallow)
        over.unpack(content.pack, git, [content.commit], strict=False)
        pin(git, applied_pin(self._resource), content.commit)
        git.run("update-ref", "--no-deref", "HEAD", content.commit)
        for key, value in _settings(folder, content.address):
            git.run("config", key, value)
        _mark(place, self._resource.resource_id).touch()


def clear_workshop(resource: PlanResource) -> None:
    """Of an apply that does not come to be."""
    with suppress(GitError):  # the project is gone, and so is what was in it
        Workshop(resource).clear()


class NewRepositories:
    """Those of one apply; every part may be repeated."""

    def __init__(self, resource: PlanResource, new: Sequence[NewRepository]) -> None:
        self._resource = resource
        self._new = new

    def bring(self) -> None:
        """If it raises, none of them is there."""
        for item in self._new:
            if self._is_there(item):
                continue
            if os.path.lexists(item.place) or not os.path.isdir(item.made):
                self.revert()
                raise ApplyRefusedError(
                    f"the repository of the new submodule {item.path} cannot be put at "
                    f"{item.place}; nothing was changed",
                    f"agents plan apply {self._resource.plan_id}",
                )
            os.makedirs(os.path.dirname(item.place), exist_ok=True)
            os.rename(item.made, item.place)

    def revert(self) -> None:
        for item in self._new:
            if self._is_there(item):
                os.makedirs(os.path.dirname(item.made), mode=0o700, exist_ok=True)
                os.rename(item.place, item.made)
                with suppress(OSError):
                    os.removedirs(os.path.dirname(item.place))

    def finish(self) -> None:
        """What was brought is the user's from now on."""
        for item in self._new:
            _mark(item.place, self._resource.resource_id).unlink(missing_ok=True)
        if self._new:
            clear_workshop(self._resource)

    def _is_there(self, item: NewRepository) -> bool:
        return _mark(item.place, self._resource.resource_id).exists()


def _settings(folder: str, address: str) -> Sequence[tuple[str, str]]:
    own = [("core.bare", "false"), ("core.worktree", folder), ("core.logallrefupdates", "true")]
    if _ADDRESS.fullmatch(address):
        own.append(("remote.origin.url", address))
        own.append(("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"))
    return own


def _mark(repository: str, resource_id: ResourceId) -> Path:
    return Path(repository, f"cleveragents-apply-{resource_id}")
