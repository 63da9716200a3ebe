"""Whether a tree may be worked on where it is, and what of it no checkpoint will have.

Refused is what could cost somebody their work: a home folder, what lies above several repositories,
our own data, a tree that cannot be written or is somebody else's, and forms of repositories whose
state is not all in one `.git` folder.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.errors import InPlaceRefusedError, PlaceTakenError, ResourceError
from cleveragents.domain.in_place import listed
from cleveragents.domain.resource import OwnState, ResourceInspection
from cleveragents.infrastructure.files.entry import Kind, StatInfo, shown
from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.walk import Listing, walk
from cleveragents.infrastructure.files.whereabouts import CurrentFolder
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.inspect import details_at
from cleveragents.infrastructure.sandbox.in_place.git_there import is_there, why_not
from cleveragents.infrastructure.sandbox.in_place.marker import MARKER, STAGE, note_of, occupant_of
from cleveragents.infrastructure.sandbox.in_place.regenerable import Regenerable, found_below

_OURS = frozenset({b".git", MARKER.encode(), STAGE.encode()})
_MOST_FILES, _MOST_BYTES = 200_000, 4 * 1024**3
_SPACE = 2
_GIB = 1024**3
_REFUSED = "it is worked on in a sandbox, without --in-place or `strategy: in-place`"


def inspect_in_place(
    spec: ResourceSpec, data_dir: str, installation: Callable[[], str]
) -> ResourceInspection:
    """Look at all of it; `installation` gives the name of this one.

    Raises InPlaceRefusedError, PlaceTakenError or ResourceError.
    """
    top = os.path.realpath(spec.location)
    _refuse_place(top, data_dir)
    _refuse_taken(top, installation)
    _refuse_part(top, is_checkout=spec.kind.has_repository)
    if spec.kind.has_repository:
        _refuse_repository(top)
    spared = excludes(spec.include)
    left_out = list(
        found_below(top, lambda path: (os.fsencode(path), True) in spared, frozenset({".git"}))
    )
    exclude = (*spec.exclude, *(f"{item.path}/" for item in left_out))
    listing = _listing(top, exclude)
    _refuse_inner(top, listing)
    _refuse_around(top, listing)
    _refuse_size(top, listing, data_dir)
    return ResourceInspection(
        location=top,
        base="",
        exclude=tuple(f"{item.path}/" for item in left_out),
        notices=tuple(_notices(top, spec, left_out, listing)),
        details=_details(top) if spec.kind.has_repository else {},
    )


def _details(top: str) -> OwnState:
    return details_at(Git(top), included_uncommitted=True, submodules=())


def _refuse_place(top: str, data_dir: str) -> None:
    home, data = os.path.realpath(os.path.expanduser("~")), os.path.realpath(data_dir)
    what = None
    if top == "/" or home == top or home.startswith(f"{top}/"):
        what = "is or holds a home folder"
    elif f"{data}/".startswith(f"{top}/") or f"{top}/".startswith(f"{data}/"):
        what = "is or holds the folder where agents keeps its own data"
    elif not os.path.isdir(top):
        what = "is not a folder"
    elif not os.access(top, os.W_OK | os.X_OK) or _is_read_only(top):
        what = "cannot be written"
    if what is not None:
        raise InPlaceRefusedError(
            f"{top} {what}, and is not worked on in place",
            "go to the folder of the project first (cd)",
        )


def _is_read_only(top: str) -> bool:
    return bool(os.statvfs(top).f_flag & os.ST_RDONLY)


def _refuse_taken(top: str, installation: Callable[[], str]) -> None:
    found = occupant_of(top)
    if found is None or found.installation == installation():
        return
    raise PlaceTakenError(top, found.data_dir, found.plan_id, note_of(top))


def _refuse_part(top: str, *, is_checkout: bool) -> None:
    """A place is a whole repository, or a folder that is in none: two timelines of one tree would
    undo each other."""
    around = CurrentFolder(top).around()
    repository = around[-1] if os.path.lexists(os.path.join(around[-1], ".git")) else None
    what = None
    if repository is not None and repository != top:
        what = f"is a part of the repository {repository}, and a timeline is of all of it"
    elif repository == top and not is_checkout:
        what = "is a repository, whose own state belongs to its timeline"
    elif repository is None and is_checkout and not is_there(top):
        raise InPlaceRefusedError(f"{top} is not a git repository", "use type fs-directory")
    if what is not None:
        raise InPlaceRefusedError(
            f"{top} {what}", f"name all of it: type git-checkout, path {repository}"
        )
    for folder in around[1:]:
        found = occupant_of(folder)
        if found is not None:
            raise InPlaceRefusedError(
                f"{top} lies in {folder}, of which there is a timeline (plan {found.plan_id})",
                f"go on with that one (cd {folder}), or close it there with `agents apply`",
            )


def _refuse_around(top: str, listing: Listing) -> None:
    inner = [path for path in listing.found if path.endswith(f"/{MARKER}".encode())]
    if inner:
        below = shown(min(inner).rpartition(b"/")[0])
        raise InPlaceRefusedError(
            f"{top} holds {below}, of which there is a timeline",
            f"go on with that one (cd {below}), close it there with `agents apply`, or leave it"
            f" alone: --exclude {below}/ (in a file: `exclude`)",
        )


def _refuse_repository(top: str) -> None:
    gitdir = os.path.join(top, ".git")
    what = None
    if not os.path.lexists(gitdir):
        what = "is a bare repository"
    elif os.path.islink(gitdir) or not os.path.isdir(gitdir):
        what = "is a worktree or submodule of another repository"
    elif why := why_not(gitdir):
        what = f"has a repository of another kind ({why})"
    elif os.path.isdir(f"{gitdir}/modules") and os.listdir(f"{gitdir}/modules"):
        what = "has submodules"
    elif any(name.startswith("sharedindex.") for name in os.listdir(gitdir)):
        what = "has a split index"
    if what is not None:
        raise InPlaceRefusedError(f"{top} {what}, which is not worked on in place yet", _REFUSED)


def _listing(top: str, exclude: Sequence[str]) -> Listing:
    try:
        with RootedFolder(top) as anchor:
            return walk(anchor, excludes(exclude, _OURS))
    except OSError as error:
        raise ResourceError(f"{top} cannot be read: {error.strerror}", f"ls -ld {top}") from error


def _refuse_inner(top: str, listing: Listing) -> None:
    """A repository in a repository has a state of its own, which is not its files."""
    if {b"HEAD", b"objects", b"refs"} <= listing.found.keys():
        raise InPlaceRefusedError(
            f"{top} is a bare repository, which has no files to work on",
            f"take a clone: git clone {top} work && cd work",
        )
    inner = {shown(path) for path in listing.found if path.endswith(b"/.git")}
    inner |= {shown(path) for path in _bare(listing)}
    if inner:
        names = [name.removesuffix("/.git") for name in sorted(inner)]
        raise InPlaceRefusedError(
            f"{top} holds other repositories: {listed(names)}",
            f"go into one of them (cd), or leave them alone: --exclude {names[0]}/ (in a file:"
            " `exclude`)",
        )


def _bare(listing: Listing) -> Iterator[bytes]:
    for path, status in listing.found.items():
        is_named = status.kind is Kind.DIR and path.endswith(b".git")
        if is_named and {path + b"/HEAD", path + b"/objects"} <= listing.found.keys():
            yield path


def _refuse_size(top: str, listing: Listing, data_dir: str) -> None:
    """Before anything is stored: all of it may have to be, and twice the room must be free."""
    files = {p: s for p, s in listing.found.items() if s.kind is Kind.FILE}
    size = sum(status.size for status in files.values())
    there = data_dir if os.path.isdir(data_dir) else os.path.dirname(data_dir) or "/"
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    space = os.statvfs(there)
    free = space.f_bavail * space.f_frsize
    if len(files) <= _MOST_FILES and size <= _MOST_BYTES and size * _SPACE <= free:
        return
    largest = listed(_largest(files), 3)
    raise InPlaceRefusedError(
        f"{top} has {len(files):,} files with {size / _GIB:.1f} GB that checkpoints would have to"
        f" hold ({free / _GIB:.1f} GB are free); most of it is in {largest}",
        f"leave out what need not go back: --exclude {_largest(files)[0]}/ (in a file: `exclude`)",
    )


def _largest(files: Mapping[bytes, StatInfo]) -> list[str]:
    sizes: dict[bytes, int] = {}
    for path, status in files.items():
        first = path.partition(b"/")[0]
        sizes[first] = sizes.get(first, 0) + max(status.size, 1)
    return [shown(name) for name in sorted(sizes, key=lambda name: -sizes[name])]


def _notices(
    top: str, spec: ResourceSpec, left_out: Sequence[Regenerable], listing: Listing
) -> Iterator[str]:
    if spec.kind.has_repository:
        yield (
            "checkpoints hold all files, HEAD, the index, branches, tags and the stash, but not"
            " the commits themselves: if `.git` is lost, so is its history"
        )
    if left_out:
        names = listed([f"{item.path} ({item.by})" for item in left_out])
        yield (
            f"not in any checkpoint, as it can be made again: {names}; to have it: --include PATH"
            " (in a file: `include`)"
        )
    if spec.exclude:
        yield f"not in any checkpoint, as you said: {listed(spec.exclude)}"
    if listing.special:
        names = listed([shown(path) for path in sorted(listing.special)])
        yield f"left alone (sockets, pipes or devices): {names}"
    mounts = [shown(path) for path in _mounts(top, listing)]
    if mounts:
        yield f"on other file systems, and captured as they are: {listed(mounts)}"


def _mounts(top: str, listing: Listing) -> Iterator[bytes]:
    device = os.stat(top).st_dev
    folders = {p: s for p, s in listing.found.items() if s.kind is Kind.DIR and s.dev != device}
    return (path for path in folders if path.rpartition(b"/")[0] not in folders)
