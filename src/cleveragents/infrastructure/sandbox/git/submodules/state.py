"""What a snapshot holds of the repositories of a sandbox's submodules, beside their files."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import make_folder
from cleveragents.infrastructure.sandbox.git.command import OFFLINE, Git
from cleveragents.infrastructure.sandbox.git.repository.git_dir import GitFolder, StateFile
from cleveragents.infrastructure.sandbox.git.repository.own_place import Submodule, folder_of
from cleveragents.infrastructure.sandbox.git.repository.packs import Packs, Stored
from cleveragents.infrastructure.sandbox.git.repository.ref_files import (
    Refs,
    existing,
    objects_in,
    read_refs,
    refs_in,
    text_of,
)
from cleveragents.infrastructure.sandbox.git.repository.tips import commit_of, tips_of_submodule
from cleveragents.infrastructure.sandbox.git.submodules.records import (
    borrowing_folder,
    in_repository,
    submodules_of,
)
from cleveragents.infrastructure.snapshots.tree.extra_state import StoredSide

T = TypeVar("T")


class Repository(Struct, frozen=True, kw_only=True):
    """Of one submodule. `git` looks at its index and objects, `base` is kept in the user's."""

    path: str
    git: Git
    base: Sequence[str]
    known: Submodule | None


class Submodules:
    """Of one sandbox; `git` looks at the sandbox's own repository."""

    def __init__(self, resource: PlanResource, git: Git) -> None:
        self._resource, self._git = resource, git
        self._folder = folder_of(resource)
        self._known = {module.place: module for module in submodules_of(resource)}

    def at(self, place: str) -> Repository:
        """With room for objects, whatever a step has made of it."""
        known = self._known.get(place)
        make_folder(self._folder.path, place)
        if known is not None:
            folder = borrowing_folder(self._resource, known)
        else:
            folder = GitFolder(self._folder.sandbox, self._folder.file(place))
            for name in ("objects/info", "objects/pack", "refs/heads"):
                make_folder(folder.path, name)
        own = {
            "GIT_INDEX_FILE": folder.file("index"),
            "GIT_OBJECT_DIRECTORY": folder.file("objects"),
            "GIT_SHALLOW_FILE": folder.file("shallow"),
        }
        if folder.has_split_index():
            # Its halves find each other only in the folder of the repository.
            own["GIT_DIR"] = folder.path
        base = [known.commit, f"{known.commit}^{{tree}}"] if known else []
        return Repository(path=folder.path, git=self._git.with_env(own), base=base, known=known)

    def stored(
        self, place: str, files: Mapping[str, StateFile], before: StoredSide | None
    ) -> Stored | None:
        """None if it is not whole."""
        own = below(place, files)
        packs = Packs(place)
        first = packs.first_refs(before) if before else None
        if before and first is not None and _described(own) == _known_of(place, before):
            return Stored(contents={}, inherited=packs.all_of(before))
        repository = self.at(place)
        refs = read_refs(repository.path)
        known = before if first is not None else None
        first = text_of(self._of_user(repository, refs)) if first is None else first
        tips = tips_of_submodule(repository.git, own, refs, refs_in(first))
        stored = packs.store(repository.git, tips, repository.base, first, known)
        return packs.with_commit(stored, commit_of(own, refs)) if stored else None

    def put_back(self, place: str, target: StoredSide) -> bool:
        """Its objects; False if it is not whole then."""
        repository = self.at(place)
        return Packs(place).put_back(repository.git, repository.base, target)

    def _of_user(self, repository: Repository, refs: Refs) -> dict[bytes, bytes]:
        """The references of which the user's repository has the object."""
        known = repository.known
        if known is None or not os.path.isdir(known.repository(self._resource.location)):
            return {}
        user = in_repository(self._resource.location, known).with_env(OFFLINE)
        theirs = set(existing(user, objects_in(refs)))
        return {name: oid for name, oid in refs.items() if oid.decode("ascii", "replace") in theirs}


def below(place: str, files: Mapping[str, T]) -> dict[str, T]:
    """The files of one repository, without those of submodules inside of it."""
    top, inner = f"{place}/", f"{place}/modules/"
    return {
        name.removeprefix(top): file
        for name, file in files.items()
        if name.startswith(top) and not name.startswith(inner)
    }


def _described(files: Mapping[str, StateFile]) -> dict[str, str]:
    return {name: file.described() for name, file in files.items()}


def _known_of(place: str, before: StoredSide) -> dict[str, str]:
    files: dict[str, str] = json.loads(before.identity)["files"]
    return below(place, files)
