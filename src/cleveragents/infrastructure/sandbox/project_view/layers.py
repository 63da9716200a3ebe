"""The ignored folders of a project, each of them a layer of its sandbox (ADR 0084).

The upper part of a layer is the sandbox's own folder of that path, and so all that holds for
folders of a sandbox holds for it. Beside the sandbox lie the list of what is a layer, and what the
kernel needs while one is mounted. Which folders there are is asked of git, in the user's project,
and takes as long whatever they hold.
A folder that a step made where the user had none is no layer, and does not become one.
"""

import os
import stat
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.confinement.covers import Layer
from cleveragents.infrastructure.files.copy.one_file import dress
from cleveragents.infrastructure.files.data_folder import make_private
from cleveragents.infrastructure.files.layers.known_layers import (
    beside,
    copied_folders,
    is_noted,
    known_layers,
    note_copied,
    note_found,
    note_layers,
)
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.include import copy_include
from cleveragents.infrastructure.sandbox.git.repository.own_place import details_of
from cleveragents.infrastructure.sandbox.location import remove_sandbox
from cleveragents.infrastructure.sandbox.project_view.instead import (
    HAS_SUBMODULES,
    MACHINE_REFUSES,
    Instead,
    instead_of_layer,
    notice_of,
)

_LISTED = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
_STAYS = (
    "it has submodules, and so steps see the sandbox at a path of its own, and not at the project's"
)

Mountable = Callable[[Confinement, str], bool | None]
"""Whether the folder at a path can be the lower part of a layer, for steps confined like that; None
if they are not to see their sandbox at the project's path at all."""


def ignored_folders(project: str) -> list[str]:
    """Relative to the project; none of them lies in another. Nothing in them is looked at."""
    listed = Git(project).run(*_LISTED, check=False).stdout.split(b"\0")[:-1]
    return [os.fsdecode(path[:-1]) for path in listed if path.endswith(b"/")]


class SandboxLayers:
    """Asks git once for each project: what is ignored later on is found by the next command."""

    def __init__(self, sandboxes_dir: str, scratch_dir: str, mountable: Mountable) -> None:
        self._sandboxes = sandboxes_dir
        self._scratch = scratch_dir
        self._mountable = mountable
        self._asked: dict[str, list[str]] = {}

    def make(self, resource: PlanResource) -> None:
        """For a sandbox that has just been made, or a step that is about to run in it: all that is
        ignored by now, and that the sandbox has not."""
        if not resource.kind.has_repository or not os.path.isdir(resource.location):
            return
        sandbox = resource.sandbox_path
        with RootedFolder(sandbox, sandbox=True) as anchor:
            known = known_layers(sandbox) if is_noted(sandbox) else self._lost(resource, anchor)
            new = [path for path in self._wanted(resource) if path not in known]
            made = [path for path in new if _is_free(anchor, path)]
            if made:
                note_found(sandbox, made)
            if made or not is_noted(sandbox):
                note_layers(sandbox, [*known, *made])
            for path in (*known, *made):
                _make_upper(anchor, path, os.path.join(resource.location, path))

    def _lost(self, resource: PlanResource, anchor: RootedFolder) -> list[str]:
        """Where the list is gone, what has a folder in both can only have been layers; of a sandbox
        that has just been made there are none."""
        copied = copied_folders(resource.sandbox_path)
        wanted = [path for path in self._wanted(resource) if path not in copied]
        return [path for path in wanted if _has_folder(anchor, f"{path}/.")]

    def known_or_all(self, resource: PlanResource) -> list[str]:
        """Of a sandbox that is to be made again: if what it knew is gone with it, all that is
        ignored by now. Its folders of these paths come back from its snapshots as upper parts."""
        known = known_layers(resource.sandbox_path)
        if known or not os.path.isdir(resource.location):
            return known
        copied = copied_folders(resource.sandbox_path)
        return [path for path in self._wanted(resource) if path not in copied]

    def note(self, resource: PlanResource, known: Sequence[str]) -> None:
        if known:
            note_layers(resource.sandbox_path, known)

    def copy_refused(self, resource: PlanResource) -> None:
        """Into a sandbox that has just been made: what cannot be a layer here, as far as a copy
        does not take long."""
        copied = [path for path, how in self._refused(resource) if how is not Instead.LEFT_OUT]
        copy_include(resource.location, tuple(copied), resource.sandbox_path)
        if copied:
            note_copied(resource.sandbox_path, copied)

    def notices(self, location: str, include: Sequence[str], *, is_covered: bool) -> list[str]:
        """What people are told before a plan is made there. One that is not covered by its sandbox
        has no layers."""
        found = self._instead(location, include, Confinement(), is_covered=is_covered)
        if is_covered:
            return notice_of(found, MACHINE_REFUSES)
        stays = [_STAYS] if self._mountable(Confinement(), location) else []
        return [*stays, *notice_of(found, HAS_SUBMODULES)]

    def _refused(self, resource: PlanResource) -> list[tuple[str, Instead]]:
        left_out = (*resource.include, *resource.cut_out)
        found = self._instead(
            resource.location, left_out, resource.confinement, is_covered=_is_covered(resource)
        )
        with RootedFolder(resource.sandbox_path, sandbox=True) as anchor:
            return [(path, how) for path, how in found if _is_free(anchor, path)]

    def _instead(
        self, location: str, left_out: Sequence[str], asked: Confinement, *, is_covered: bool
    ) -> list[tuple[str, Instead]]:
        refusing = (False,) if is_covered else (False, True)
        refused = [
            (path, lower)
            for path, lower in self._ignored(location, left_out)
            if self._mountable(asked, lower) in refusing
        ]
        if refused:
            make_private(self._scratch)
        return [(path, instead_of_layer(lower, self._scratch)) for path, lower in refused]

    @contextmanager
    def opened(self, resource: PlanResource) -> Generator[tuple[Layer, ...]]:
        """Ready to be mounted."""
        self.make(resource)
        found = [
            path for path in known_layers(resource.sandbox_path) if self._is_there(resource, path)
        ]
        if not found:
            yield ()
            return
        work = tempfile.mkdtemp(prefix="work-", dir=beside(resource.sandbox_path))
        try:
            yield tuple(_layers(resource, found, work))
        finally:
            remove_sandbox(self._sandboxes, work)

    def _wanted(self, resource: PlanResource) -> Iterator[str]:
        if not _is_covered(resource):
            return
        left_out = (*resource.include, *resource.cut_out)
        for path, lower in self._ignored(resource.location, left_out):
            if self._mountable(resource.confinement, lower):
                yield path

    def _ignored(self, project: str, left_out: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Each with where it is."""
        if project not in self._asked:
            self._asked[project] = ignored_folders(project)
        for path in self._asked[project]:
            lower = os.path.join(project, path)
            ours = any(_overlap(path, other.rstrip("/")) for other in left_out)
            if not ours and _is_folder(lower):
                yield path, lower

    def _is_there(self, resource: PlanResource, path: str) -> bool:
        """Its upper part, which a step may have replaced by something else."""
        lower = os.path.join(resource.location, path)
        try:
            with RootedFolder(resource.sandbox_path, sandbox=True) as anchor:
                anchor.folder(os.fsencode(path))
        except OSError:
            return False
        return _is_folder(lower) and self._mountable(resource.confinement, lower) is True


def _layers(resource: PlanResource, paths: Sequence[str], work: str) -> Iterator[Layer]:
    os.mkdir(f"{work}/base", 0o700)
    for number, path in enumerate(sorted(paths)):
        os.mkdir(f"{work}/{number}", 0o700)
        lower = os.path.join(os.path.realpath(resource.location), path)
        yield Layer(path=path, lower=lower, work=f"{work}/{number}", base=f"{work}/base")


def _is_covered(resource: PlanResource) -> bool:
    """Repositories of submodules know where their files are: its sandbox stays where it is."""
    return not details_of(resource).submodules


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_free(anchor: RootedFolder, path: str) -> bool:
    """Its folder is there, and nothing in its place."""
    try:
        anchor.status(os.fsencode(path))
    except FileNotFoundError:
        return _has_folder(anchor, path)
    except OSError:
        return False
    return False


def _has_folder(anchor: RootedFolder, path: str) -> bool:
    try:
        anchor.folder(os.fsencode(os.path.dirname(path)))
    except OSError:
        return False
    return True


def _make_upper(anchor: RootedFolder, path: str, lower: str) -> None:
    """With the mode, owner and times of the lower one, whose place it takes."""
    if not _is_free(anchor, path) or not _is_folder(lower):
        return
    folder, name = anchor.place(os.fsencode(path))
    os.mkdir(name, 0o700, dir_fd=folder)
    dress(anchor.folder(os.fsencode(path)), os.lstat(lower))


def _overlap(one: str, two: str) -> bool:
    return one == two or one.startswith(f"{two}/") or two.startswith(f"{one}/")
