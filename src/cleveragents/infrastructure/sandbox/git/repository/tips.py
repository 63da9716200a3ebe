"""Which objects a repository's state still needs: the ends from which all can be reached."""

from collections.abc import Mapping

from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.repository.git_dir import STASH_LOG, StateFile
from cleveragents.infrastructure.sandbox.git.repository.packs import lines_of
from cleveragents.infrastructure.sandbox.git.repository.ref_files import (
    Refs,
    existing,
    head_commit,
    objects_in,
)

# Files of an operation in progress that name commits it still needs.
_OTHER_HEADS = (
    *("MERGE_HEAD", "MERGE_AUTOSTASH", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"),
    *("rebase-merge/orig-head", "rebase-merge/onto", "rebase-merge/autostash"),
    *("rebase-apply/orig-head", "rebase-apply/onto", "rebase-apply/autostash", "sequencer/head"),
)
_GITLINK = "160000"
_NOTHING = {"0"}


def tips_of_project(git: Git, files: Mapping[str, StateFile], refs: Refs, first: Refs) -> list[str]:
    """What is not kept by references that were the user's. May note trees in the index."""
    # A stale name may stand for what is gone already; that must not stop a snapshot.
    return sorted({*existing(git, _named(files, refs, first)), *_staged(git)})


def tips_of_submodule(
    git: Git, files: Mapping[str, StateFile], refs: Refs, first: Refs
) -> list[str]:
    """The same without a change in the index, which is state by its bytes there."""
    named = _named(files, refs, first)
    return sorted(existing(git, named | _staged_inside(git, commit_of(files, refs))))


def commit_of(files: Mapping[str, StateFile], refs: Refs) -> str:
    head = files.get("HEAD")
    return head_commit(head.data, refs) if head else ""


def _named(files: Mapping[str, StateFile], refs: Refs, first: Refs) -> set[str]:
    commit = commit_of(files, refs)
    named = {commit} if commit else set[str]()
    named |= objects_in(refs) - objects_in(first)
    for name in _OTHER_HEADS:
        named.update(lines_of(files[name].data) if name in files else ())
    if STASH_LOG in files:
        # "<old> <new> <who> <when>\t<why>"
        named.update(line.split(b" ")[1].decode() for line in files[STASH_LOG].data.splitlines())
    return named


def _staged(git: Git) -> list[str]:
    tree = git.run("write-tree", check=False)
    if tree.code == 0:
        return [tree.stdout.decode("ascii").strip()]
    # In the middle of a merge there is no tree, nor where objects are gone: then each file that is
    # there is named by itself.
    return existing(git, set(_listed(git)))


def _staged_inside(git: Git, commit: str) -> set[str]:
    """Each file that is staged otherwise than in the commit."""
    args = ("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames")
    changed = git.run(*args, commit, check=False) if commit else None
    if changed is None or changed.code != 0:
        return set(_listed(git))
    # ":<old mode> <new mode> <old> <new> <status>", and each with a path after it
    heads = [head.decode("ascii").split(" ") for head in changed.stdout.split(b"\0")[:-1:2]]
    staged = {new for _, mode, _, new, _ in heads if mode != _GITLINK and set(new) != _NOTHING}
    return staged | set(_listed(git, "--unmerged"))


def _listed(git: Git, *options: str) -> list[str]:
    done = git.run("ls-files", "--stage", "-z", *options, check=False)
    entries = (line.split(b"\t")[0].decode("ascii").split(" ") for line in done.stdout.split(b"\0"))
    return [entry[1] for entry in entries if len(entry) == 3 and entry[0] != _GITLINK]
