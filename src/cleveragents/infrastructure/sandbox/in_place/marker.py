"""Who works in place here: a note in the tree, by which another installation finds the first one.

Two homes, two users or a container on one tree would each believe to be alone. In a checkout the
note lies in the repository, else at the top of the folder; no snapshot has it.
"""

import json
import os
from contextlib import suppress

from msgspec import Struct

from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.files.durable_files import read_file, write_file

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
    write_file(os.path.join(top, name), json.dumps(said).encode() + b"\n", 0o644)


def move_out(location: str, plan_id: PlanId) -> None:
    """If it is this plan's; others stay."""
    found = occupant_of(location)
    if found is None or found.plan_id != plan_id:
        return
    for top, name in _places(location):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(top, name))


def stage_root(location: str) -> str:
    """Where files lie ready on the tree's own file system, out of the user's sight if possible."""
    gitdir = os.path.join(location, ".git")
    return os.path.join(gitdir, STAGE) if os.path.isdir(gitdir) else os.path.join(location, STAGE)


def _places(location: str):
    gitdir = os.path.join(location, ".git")
    if os.path.isdir(gitdir):
        yield gitdir, _IN_REPOSITORY
    yield location, MARKER
