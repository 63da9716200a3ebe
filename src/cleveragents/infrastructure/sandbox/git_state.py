"""Owns the git side of a snapshot: HEAD, its branch, the index, and operations in progress.

Objects that nothing but the sandbox names are stored with the snapshot, as packs: refs of a
worktree do not keep them from a `git gc` in the main repository.
"""

import hashlib
import json
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypedDict

from cleveragents.domain.errors import RestoreFailedError, SnapshotFailedError
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git
from cleveragents.infrastructure.sandbox.git_folder import GitFolder, write_file
from cleveragents.infrastructure.snapshots.side import Before, SideRecord, StoredSide

_IDENTITY = {
    "GIT_AUTHOR_NAME": "cleveragents",
    "GIT_AUTHOR_EMAIL": "cleveragents@localhost",
    "GIT_COMMITTER_NAME": "cleveragents",
    "GIT_COMMITTER_EMAIL": "cleveragents@localhost",
}
# Files of an operation in progress that name commits it still needs.
_OTHER_HEADS = (
    *("MERGE_HEAD", "MERGE_AUTOSTASH", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"),
    *("rebase-merge/orig-head", "rebase-merge/onto", "rebase-merge/autostash"),
    *("rebase-apply/orig-head", "rebase-apply/onto", "rebase-apply/autostash", "sequencer/head"),
)
_EMPTY_PACK = 0


class _Identity(TypedDict):
    """What counts as git state. `ref` is empty for a detached HEAD, `commit` for an unborn one."""

    ref: str
    commit: str
    index: str
    operation: dict[str, str]
    pointer: bool


class GitBlobs:
    """Blobs of the base commit, which is kept alive as long as there is a plan."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._algorithm = ""

    @property
    def algorithm(self) -> str:
        # Asked for every file of a first snapshot, so git is asked once.
        if not self._algorithm:
            self._algorithm = self._git.text("rev-parse", "--show-object-format")
        return self._algorithm

    def read(self, oids: Sequence[str]) -> Iterator[bytes | None]:
        request = "".join(f"{oid}\n" for oid in oids).encode("ascii")
        output = memoryview(self._git.run("cat-file", "--batch", input=request).stdout)
        position = 0
        for oid in oids:
            # "<oid> blob <size>\n<bytes>\n", or "<oid> missing\n"
            line = bytes(output[position : position + len(oid) + 40]).partition(b"\n")[0]
            position += len(line) + 1
            fields = line.split(b" ")
            if len(fields) != 3 or fields[1] != b"blob":
                yield None
                continue
            yield bytes(output[position : position + int(fields[2])])
            position += int(fields[2]) + 1


class GitState:
    """The side state of one worktree; which git folder that has is settled by the first read."""

    def __init__(self, resource: PlanResource) -> None:
        self._resource = resource
        self._project = Git(resource.location)
        self.blobs = GitBlobs(self._project)

    def base(self) -> Mapping[bytes, str]:
        # Of the commit, not of the index: only what the commit holds is kept for good.
        listing = self._project.run(
            "ls-tree", "-r", "-z", "--full-tree", self._resource.base, check=False
        )
        known: dict[bytes, str] = {}
        for line in listing.stdout.split(b"\0")[:-1] if listing.code == 0 else ():
            described, _, path = line.partition(b"\t")
            mode, _, oid = described.decode("ascii").split(" ")
            if mode.startswith("100"):
                known[path] = oid
        return known

    def hidden(self, memory: str | None) -> frozenset[bytes]:
        """The top `.git` is no content as long as it is the one that the sandbox was made with."""
        return frozenset({b".git"}) if self._folder(memory).pointer_is_ours() else frozenset()

    def read(self, before: Before | None) -> SideRecord | None:
        folder = self._folder(before.memory if before else None)
        fingerprint = folder.fingerprint(time.time_ns())
        if before and fingerprint and fingerprint == before.fingerprint:
            return None
        git = self._git(folder)
        state = _read_identity(git, folder)
        identity = json.dumps(state, sort_keys=True)
        contents: dict[str, bytes] = {}
        inherited: Mapping[str, bytes] = before.stored.hashes if before else {}
        if before is None or identity != before.stored.identity:
            contents = _files_of(folder)
            objects, inherited = self._objects(git, _tips(git, folder, state), before)
            contents |= objects
        return SideRecord(
            identity=identity,
            sandbox_ref=state["commit"],
            fingerprint=fingerprint,
            memory=before.memory if before else folder.memory(state["ref"]),
            contents=contents,
            inherited=inherited,
        )

    def stands(self, target: StoredSide, before: Before) -> bool:
        # Packs may have to be unpacked again: what only the sandbox names can be gone from git.
        if target.identity != before.stored.identity or any(map(_is_pack, target.hashes)):
            return False
        folder = self._folder(before.memory)
        fingerprint = folder.fingerprint(time.time_ns())
        return bool(fingerprint) and fingerprint == before.fingerprint and folder.is_tidy()

    def prepare(self, target: StoredSide, memory: str, known_refs: Collection[str]) -> None:
        folder = self._folder(memory)
        git = self._git(folder)
        self._refuse_foreign_branch(git, folder, json.loads(target.identity), known_refs)
        request = _revisions(_lines(target.content("tips")), self._base())
        if _is_whole(git, request):
            return
        for name in sorted(target.hashes):
            if _is_pack(name):
                git.run("index-pack", "--stdin", "--fix-thin", input=target.content(name))
        if not _is_whole(git, request):
            raise RestoreFailedError(self._resource.name, "git objects of the snapshot are missing")

    def write(self, target: StoredSide, memory: str) -> None:
        folder = self._folder(memory)
        state: _Identity = json.loads(target.identity)
        operation = {name: target.content(f"operation:{name}") for name in state["operation"]}
        try:
            folder.remove_locks()
            _write_head(self._git(folder), state)
            _write_index(folder, target)
            folder.write_operation(operation)
            if state["pointer"]:
                folder.write_pointer()
        except OSError as error:
            raise RestoreFailedError(self._resource.name, str(error)) from error

    def _folder(self, memory: str | None) -> GitFolder:
        if memory:
            return GitFolder.remembered(self._resource.sandbox_path, memory)
        try:
            return GitFolder.found(self._resource.sandbox_path)
        except OSError as error:
            raise SnapshotFailedError(
                f"the sandbox of `{self._resource.name}` is no git worktree ({error})",
                "cancel the plan and make a new one",
            ) from error

    def _git(self, folder: GitFolder) -> Git:
        # The folder is named outright: what the sandbox's `.git` says may have been altered.
        places = {"GIT_DIR": folder.gitdir, "GIT_WORK_TREE": self._resource.sandbox_path}
        return Git(folder.gitdir, {**_IDENTITY, **places})

    def _base(self) -> list[str]:
        """What is kept alive for us, and need neither be stored nor looked through."""
        # The tree by itself too: of a commit alone, git leaves out only what its history leads to.
        return [self._resource.base, f"{self._resource.base}^{{tree}}"]

    def _objects(
        self, git: Git, tips: Sequence[str], before: Before | None
    ) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Packs that, with those of the snapshot before and the base commit, hold all of `tips`."""
        contents = {"tips": "\n".join(tips).encode("ascii")}
        base = self._base()
        if before:
            earlier = {k: v for k, v in before.stored.hashes.items() if _is_pack(k)}
            known = [*base, *_lines(before.stored.content("tips"))]
            pack = _pack(git, _revisions(tips, known))
            if pack is not None:
                return contents | _named(pack), earlier
        # The first, or what the one before had is gone from the repository: pack all of it.
        for known in (base, []):
            pack = _pack(git, _revisions(tips, known))
            if pack is not None:
                return contents | _named(pack), {}
        raise SnapshotFailedError(
            f"git could not pack the commits of `{self._resource.name}`",
            "check the repository with `git fsck`",
        )

    def _refuse_foreign_branch(
        self, git: Git, folder: GitFolder, state: _Identity, known_refs: Collection[str]
    ) -> None:
        """A branch that somebody else moved meanwhile is not ours to move back."""
        ref = state["ref"]
        now = _resolve(git, ref) if ref else ""
        if ref == folder.own_ref or now in ("", state["commit"]) or now in known_refs:
            return
        raise RestoreFailedError(
            self._resource.name, f"the branch {ref!r} was moved outside of the plan"
        )


def _read_identity(git: Git, folder: GitFolder) -> _Identity:
    symbolic = git.run("symbolic-ref", "-q", "HEAD", check=False)
    listing = git.run("ls-files", "--stage", "-v", "-z").stdout
    operation = folder.operation()
    return {
        "ref": os.fsdecode(symbolic.stdout.removesuffix(b"\n")) if symbolic.code == 0 else "",
        "commit": _resolve(git, "HEAD"),
        # What the index says, not its bytes: those also change when git only looked at files.
        "index": hashlib.sha256(listing).hexdigest(),
        "operation": {k: hashlib.sha256(v).hexdigest() for k, v in sorted(operation.items())},
        "pointer": folder.pointer_is_ours(),
    }


def _resolve(git: Git, name: str) -> str:
    found = git.run("rev-parse", "-q", "--verify", f"{name}^{{commit}}", check=False)
    return found.stdout.decode("ascii").strip() if found.code == 0 else ""


def _files_of(folder: GitFolder) -> dict[str, bytes]:
    contents = {f"operation:{name}": data for name, data in folder.operation().items()}
    index = folder.read("index")
    return contents if index is None else {**contents, "index": index}


def _tips(git: Git, folder: GitFolder, state: _Identity) -> list[str]:
    """The objects from which all that HEAD, index and operation need can be reached."""
    tips = [state["commit"]] if state["commit"] else []
    tree = git.run("write-tree", check=False)
    if tree.code == 0:
        tips.append(tree.stdout.decode("ascii").strip())
    else:
        # In the middle of a merge there is no tree, so each file is named by itself.
        listing = git.run("ls-files", "--stage", "-z").stdout.split(b"\0")[:-1]
        files = (line.split(b"\t")[0].decode("ascii").split(" ") for line in listing)
        tips += [oid for mode, oid, _ in files if mode != "160000"]
    heads = (_lines(folder.read(name) or b"") for name in _OTHER_HEADS)
    # A stale one may name what is gone already; that must not stop a snapshot.
    others = [oid for oids in heads for oid in oids if git.succeeds("cat-file", "-e", oid)]
    return sorted({*tips, *others})


def _revisions(wanted: Sequence[str], known: Sequence[str]) -> bytes:
    return "".join([*(f"{oid}\n" for oid in wanted), *(f"^{oid}\n" for oid in known)]).encode()


def _pack(git: Git, request: bytes) -> bytes | None:
    done = git.run("pack-objects", "--revs", "--stdout", "-q", input=request, check=False)
    return done.stdout if done.code == 0 else None


def _named(pack: bytes) -> dict[str, bytes]:
    # "PACK", version, number of objects: four bytes each.
    if int.from_bytes(pack[8:12], "big") == _EMPTY_PACK:
        return {}
    return {f"pack:{hashlib.sha256(pack).hexdigest()}": pack}


def _is_pack(name: str) -> bool:
    return name.startswith("pack:")


def _is_whole(git: Git, request: bytes) -> bool:
    return (
        git.run("rev-list", "--objects", "--quiet", "--stdin", input=request, check=False).code == 0
    )


def _lines(data: bytes) -> list[str]:
    return data.decode("ascii").split()


def _write_head(git: Git, state: _Identity) -> None:
    if not state["ref"]:
        git.run("update-ref", "--no-deref", "HEAD", state["commit"])
        return
    git.run("symbolic-ref", "HEAD", state["ref"])
    if state["commit"]:
        git.run("update-ref", state["ref"], state["commit"])
    elif _resolve(git, state["ref"]):
        git.run("update-ref", "-d", state["ref"])


def _write_index(folder: GitFolder, target: StoredSide) -> None:
    if "index" in target.hashes:
        write_file(folder.path("index"), target.content("index"), mode=0o644)
        return
    with suppress(FileNotFoundError):
        os.unlink(folder.path("index"))
