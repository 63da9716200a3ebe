"""Listing a tree with GNU find, several of them at once, where that can be done exactly."""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.processes.on_path import program_on_path
from cleveragents.infrastructure.snapshots.changes.listing import (
    CHARACTERS,
    EXCLUDED,
    FILE,
    FOLDER,
    FORMATS,
    LINK,
    LINKED,
    MOST_TOPS,
    SPECIAL,
    WHOLE,
    Part,
    TreeListing,
    folder_record,
)
from cleveragents.infrastructure.snapshots.changes.subprocesses import (
    CommandFailedError,
    ParallelCommands,
)

# Python's patterns mean something else by them than the C library's.
_UNLIKE = (b"[", b"\\")
_SPECIAL = (b"\\", b"*", b"?", b"[")


class CannotListError(Exception):
    """There is no such program here, or it could not list everything: look without it."""


class Listed(NamedTuple):
    """A part as it was, and the text that it is now."""

    before: Part
    now: bytes


def list_with_find(
    anchor: RootedFolder,
    exclude: Excludes,
    before: TreeListing,
    prepare: Callable[[bytes], None],
    meanwhile: Callable[[], None],
) -> list[Listed]:
    """All parts, and one more for what is new at the tops. Raises CannotListError.

    `prepare` is called with the old text of each part before that is listed, `meanwhile` once
    while nobody here has anything to do.
    """
    program, conditions = program_on_path("find"), expression(exclude)
    if program is None or conditions is None:
        raise CannotListError
    try:
        ribs, parts = _now(anchor, before, exclude.hidden)
        whole = parts[0][1] == [WHOLE]
        hidden = _without(name for name in exclude.hidden if whole or b"/" in name)
        argv = [program, "-P"], [*hidden, *conditions]
        with ParallelCommands(anchor.folder(b"")) as finders:
            for part, tops in parts:
                prepare(part.text)
                _start(finders, argv, tops)
            meanwhile()
            answers = iter(finders.answers())
    except (CommandFailedError, OSError) as error:
        raise CannotListError from error
    return [*ribs, *(Listed(part, next(answers) if tops else b"") for part, tops in parts)]


def expression(exclude: Excludes) -> list[bytes] | None:
    """What to do with each path that is not hidden, as find's arguments; None if that cannot be
    said."""
    if any(mark in pattern for pattern, _ in exclude.patterns for mark in _UNLIKE):
        return None
    if exclude.spared_names or exclude.spared_paths:
        return None
    conditions: list[list[bytes]] = []
    for pattern, folders_only in exclude.patterns:
        kind = [b"-type", b"d"] if folders_only else []
        conditions.append([*kind, b"-path", b"./" + pattern])
        if b"/" not in pattern:
            conditions.append([*kind, b"-name", pattern])
    words: list[bytes] = []
    for condition in conditions:
        words += [*condition, b"-prune", b"-printf", FORMATS[EXCLUDED], b"-o"]
    words += [b"-type", b"d", b"-printf", FORMATS[FOLDER], b"-o"]
    words += [b"-type", b"f", b"-links", b"1", b"-printf", FORMATS[FILE], b"-o"]
    words += [b"-type", b"f", b"-printf", FORMATS[LINKED], b"-o"]
    words += [b"-type", b"l", b"-printf", FORMATS[LINK], b"-o"]
    words += [b"-type", b"c", b"-printf", FORMATS[CHARACTERS], b"-o"]
    return [*words, b"-printf", FORMATS[SPECIAL]]


def _start(
    finders: ParallelCommands, argv: tuple[Sequence[str], Sequence[bytes]], tops: Sequence[bytes]
) -> None:
    """`argv` is what comes before the places and what comes behind them."""
    if not tops:
        return
    whole = tops[0] == WHOLE
    places = [b".", b"-mindepth", b"1"] if whole else [b"./" + top for top in tops]
    finders.start([*argv[0], *places, b"-ignore_readdir_race", *argv[1]], {})


def _without(hidden: Iterable[bytes]) -> list[bytes]:
    """Before all other conditions. Every path would be compared with them, so that the tops, where
    there are some, rather leave out what is hidden among them."""
    return [
        word
        for name in sorted(hidden)
        for word in (b"-path", b"./" + _literal(name), b"-prune", b"-o")
    ]


def _literal(name: bytes) -> bytes:
    for mark in _SPECIAL:
        name = name.replace(mark, b"\\" + mark)
    return name


def _now(
    anchor: RootedFolder, before: TreeListing, hidden: Collection[bytes]
) -> tuple[list[Listed], list[tuple[Part, list[bytes]]]]:
    """The spine, which is looked at here; and the parts, each with the tops that are there."""
    if not before.spine:
        return [], [(part, list(part.tops)) for part in before.parts]
    present: set[bytes] = set()
    ribs: list[bytes] = []
    for folder in before.spine:
        fd = anchor.folder(folder)
        prefix = folder + b"/" if folder else b""
        present.update(prefix + os.fsencode(name) for name in os.listdir(fd))
        if folder:
            ribs.append(folder_record(folder, os.fstat(fd)))
    present.difference_update(before.spine, hidden)
    listed: list[Listed] = []
    parts: list[tuple[Part, list[bytes]]] = []
    for part in before.parts:
        if part.tops:
            parts.append((part, [top for top in part.tops if top in present]))
            present.difference_update(part.tops)
        else:
            listed.append(Listed(part, b"".join(ribs)))
    if len(present) > MOST_TOPS:
        raise CannotListError
    return listed, [*parts, (Part((), b""), sorted(present))]
