"""How the repository of a sandbox is found at the project's path, and what it borrows.

The sandbox's `.git` names it from where the sandbox really lies, and its objects are borrowed from
below the path that is covered. So two files are read in the place of others: one that names the
repository from anywhere, and one that names a place where the user's objects can be read.
Which objects those are is on record; what a step wrote into its repository leads nowhere.
"""

import os

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.confinement.covers import Seen
from cleveragents.infrastructure.sandbox.git.repository.git_dir import GitFolder, quoted
from cleveragents.infrastructure.sandbox.git.repository.own_place import objects_of

Seens = tuple[Seen, ...]


def repository_view(resource: PlanResource, room: str) -> tuple[Seens, Seens]:
    """What is lent, and what is replaced. `room` is a folder for files of ours."""
    if not resource.kind.has_repository:
        return (), ()
    home, folder = os.path.realpath(resource.location), GitFolder(resource.sandbox_path)
    pointer = _file(room, "pointer", b"gitdir: " + os.fsencode(folder.path) + b"\n")
    named = Seen(source=pointer, place=f"{home}/.git")
    objects = os.path.realpath(objects_of(resource))
    if not objects.startswith(f"{home}/"):
        return (), (named,)
    place = f"{room}/objects"
    os.mkdir(place, 0o700)
    told = _file(room, "borrowed", os.fsencode(quoted(place)) + b"\n")
    borrowed = Seen(source=told, place=folder.file("objects/info/alternates"))
    return (Seen(source=objects, place=place),), (named, borrowed)


def _file(room: str, name: str, data: bytes) -> str:
    path = f"{room}/{name}"
    with open(path, "wb") as file:
        file.write(data)
    return path
