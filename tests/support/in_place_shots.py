"""The user's own tree and repository at one moment, and what must be true of two such moments."""

from dataclasses import dataclass
from pathlib import Path

from tests.support.projects import Project
from tests.support.trees import Tree, tree_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """All that is the user's: files, what a group has of the repository, and what none has."""

    tree: Tree
    head: bytes
    index: str
    refs: dict[str, str]
    never_ours: tuple[object, ...]


def shot_of(project: Project) -> Shot:
    path, git = project.path, project.git
    named = [
        line.split(" ")
        for line in git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    ]
    counted = ("refs/heads/", "refs/tags/", "refs/stash")
    remotes = tuple(item for item in map(tuple, named) if item[0].startswith("refs/remotes/"))
    fetched = path / ".git/FETCH_HEAD"
    return Shot(
        tree=tree_of(path),
        head=(path / ".git/HEAD").read_bytes(),
        index=git("ls-files", "--stage", "-v"),
        refs={name: value for name, value in named if name.startswith(counted)},
        never_ours=(
            remotes,
            fetched.read_bytes() if fetched.exists() else b"",
            (path / ".git/config").read_bytes(),
        ),
    )


def others_refs_stay(last: Shot, before: Shot, after: Shot) -> None:
    for name in {*last.refs, *before.refs}:
        if last.refs.get(name) != before.refs.get(name):
            assert after.refs.get(name) == before.refs.get(name), f"{name} was moved by others"


def others_files_stay(last: Tree, before: Tree, after: Tree) -> None:
    for path in {*last, *before}:
        if last.get(path) != before.get(path):
            assert after.get(path) == before.get(path), f"{path!r} was changed by others"


def repository_is(
    target: Shot, before: Shot, after: Shot, left: list[str], *, pending: bool
) -> None:
    named = {item.partition(":")[0] for item in left}
    stays = any(item.startswith("HEAD, the index") for item in left)
    for name in {*target.refs, *after.refs}:
        if after.refs.get(name) != target.refs.get(name):
            assert name in named or stays, (
                f"{name} is not where it was, and nobody was told: {left}"
            )
            assert pending or after.refs.get(name) == before.refs.get(name), name
    if stays:
        assert pending or (after.head, after.index) == (before.head, before.index)
        return
    assert after.head == target.head
    if "the index" not in named:
        assert after.index == target.index


def difference(found: Tree, wanted: Tree) -> str:
    return "\n".join(
        f"{path!r}: {found.get(path)} instead of {wanted.get(path)}"
        for path in sorted({*found, *wanted})
        if found.get(path) != wanted.get(path)
    )


def processes_in(folder: Path) -> list[int]:
    found = []
    for item in Path("/proc").iterdir():
        if item.name.isdigit():
            try:
                cwd = (item / "cwd").readlink()
            except OSError:
                continue
            if cwd.is_relative_to(folder):
                found.append(int(item.name))
    return found
