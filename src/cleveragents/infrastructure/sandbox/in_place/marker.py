"""Who works in place here: a note in the tree, by which another installation finds the first one.

Two homes, two users or a container on one tree would each believe to be alone. In a checkout the
note lies in the repository, else at the top of the folder; no snapshot has it.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.files.durable_files import put_below, read_file, remove, status

MARKER = ".cleveragents-in-place"
STAGE = ".cleveragents-stage"
_IN_REPOSITORY = "cleveragents-in-place"


class Occupant(Struct, frozen=True, kw_only=True):
    """Whose timeline it is: the installation by name and by its folder, and the plan."""

    installation: str
    data_dir: str
    plan_id: PlanId


def occupant_of(location: str) -> Occupant | None:
    """None if there is nobody, or what is noted cannot be read."""
    for top, name in _places(location):
        data = read_file(top, name)
        if data is None:
            continue
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(data)
            return Occupant(
                installation=str(said["installation"]),
                data_dir=str(said["data_dir"]),
                plan_id=PlanId(str(said["plan_id"])),
            )
    return None


def move_in(location: str, occupant: Occupant) -> None:
    said = {
        "installation": occupant.installation,
        "data_dir": occupant.data_dir,
        "plan_id": occupant.plan_id,
    }
    top, name = next(_places(location))
    put_below(top, name, json.dumps(said).encode() + b"\n")


def move_out(location: str, plan_id: PlanId) -> None:
    """If it is this plan's; others stay."""
    found = occupant_of(location)
    if found is None or found.plan_id != plan_id:
        return
    for top, name in _places(location):
        remove(top, name)


def note_of(location: str) -> str:
    """Where the note is that `occupant_of` has read."""
    found = (os.path.join(*place) for place in _places(location) if read_file(*place) is not None)
    return next(found, os.path.join(location, MARKER))


def stage_root(location: str) -> str:
    """Where files lie ready on the tree's own file system, out of the user's sight if possible."""
    top = os.path.join(location, ".git") if _has_folder(location, ".git") else location
    return os.path.join(top, STAGE)


def in_the_way(location: str) -> str | None:
    """What has the name of that folder and is none: somebody's, which is not ours to remove."""
    top, name = os.path.split(stage_root(location))
    found = status(top, name)
    return os.path.join(top, name) if found and not stat.S_ISDIR(found.st_mode) else None


def _places(location: str) -> Iterator[tuple[str, str]]:
    if _has_folder(location, ".git"):
        yield os.path.join(location, ".git"), _IN_REPOSITORY
    yield location, MARKER


def _has_folder(location: str, name: str) -> bool:
    """Not a link to one, which may lead out of the tree."""
    found = status(location, name)
    return found is not None and stat.S_ISDIR(found.st_mode)
