"""The three-way merge of trees: its rules one by one, and random ones against git itself."""

import hashlib
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.runners import git_inside

from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY
from cleveragents.domain.subplan import ConflictKind
from cleveragents.infrastructure.files.entry import Entry, Kind, same_state
from cleveragents.infrastructure.merging.path_merge import Merged, MergeTrees, PathMerge
from cleveragents.infrastructure.merging.tree_merge import merge_of_texts
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference

Files = Mapping[str, str]
LINES = "one\ntwo\nthree\nfour\nfive\nsix\n"


class Bench:
    """Trees given as files by path; `->x` is a link, `+x` an executable file."""

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir(exist_ok=True)
        self.inside = git_inside(scratch)
        self.parent = PlanResource(
            resource_id=ResourceId("01J00000000000000000000003"),
            plan_id=PlanId("01J00000000000000000000001"),
            name="code",
            type=FS_DIRECTORY.type,
            location=str(scratch),
            base="",
            sandbox_path=str(scratch),
        )
        self.contents: dict[bytes, bytes] = {}

    def tree(self, files: Files) -> dict[bytes, Entry]:
        entries: dict[bytes, Entry] = {}
        for path, content in files.items():
            entry = self._entry(path.encode(), content)
            entries[entry.path] = entry
            folder = entry.path.rpartition(b"/")[0]
            while folder:
                entries.setdefault(folder, Entry(path=folder, kind=Kind.DIR, mode=0o755))
                folder = folder.rpartition(b"/")[0]
        return entries

    def _entry(self, path: bytes, content: str) -> Entry:
        if content.startswith("->"):
            return Entry(path=path, kind=Kind.LINK, target=content[2:].encode())
        if content == "/":
            return Entry(path=path, kind=Kind.DIR, mode=0o755)
        mode = 0o755 if content.startswith("+") else 0o644
        data = content.removeprefix("+").encode("latin-1")
        key = hashlib.sha256(data).digest()
        self.contents[key] = data
        return Entry(path=path, kind=Kind.FILE, mode=mode, size=len(data), hash=key)

    def merge(
        self,
        base: Files,
        ours: Files,
        theirs: Files,
        strategy: MergeStrategy = MergeStrategy.GIT_THREE_WAY,
    ) -> Merged:
        old, mine, new = self.tree(base), self.tree(ours), self.tree(theirs)

        def below(folder: bytes) -> Iterable[bytes]:
            return [path for path in mine if path.startswith(folder + b"/")]

        trees = MergeTrees(
            changes=_changes(old, new),
            our_changes=lambda: _changes(old, mine),
            ours=mine.get,
            below=below,
            folder=lambda path: new[path],
            content=lambda entry: self.contents[entry.hash],
        )
        with merge_of_texts(self.inside, self.parent) as merge_text:
            return PathMerge(trees, strategy, merge_text, 1).run()

    def result(self, ours: Files, merged: Merged) -> dict[str, str]:
        now: dict[bytes, Entry | None] = {**self.tree(ours), **merged.wanted}
        known = {**self.contents, **merged.contents}
        found: dict[str, str] = {}
        for path, entry in sorted(now.items()):
            if entry is None or entry.kind is Kind.DIR:
                continue
            if entry.kind is Kind.LINK:
                found[path.decode()] = "->" + entry.target.decode()
            else:
                mark = "+" if entry.mode & 0o100 else ""
                found[path.decode()] = mark + known[entry.hash].decode("latin-1")
        return found


def _changes(old: Mapping[bytes, Entry], new: Mapping[bytes, Entry]) -> list[PathDifference]:
    paths = sorted(old.keys() | new.keys())
    found = [PathDifference(path, old.get(path), new.get(path)) for path in paths]
    return [item for item in found if not same_state(item.old, item.new)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def told(merged: Merged) -> dict[str, ConflictKind]:
    return {found.path.decode(): found.kind for found in merged.conflicts}


CLEAN = {
    "only the child changed it": ({"a": "1"}, {"a": "1"}, {"a": "2"}, {"a": "2"}),
    "only the parent changed it": ({"a": "1"}, {"a": "2"}, {"a": "1"}, {"a": "2"}),
    "both changed it to the same": ({"a": "1"}, {"a": "2"}, {"a": "2"}, {"a": "2"}),
    "different lines of one text": (
        {"a": LINES},
        {"a": LINES.replace("one", "ONE")},
        {"a": LINES.replace("six", "SIX")},
        {"a": LINES.replace("one", "ONE").replace("six", "SIX")},
    ),
    "one the mode, one the text": ({"a": "1"}, {"a": "+1"}, {"a": "2"}, {"a": "+2"}),
    "the child deleted it": ({"a": "1", "b": "2"}, {"a": "1", "b": "2"}, {"b": "2"}, {"b": "2"}),
    "both deleted it": ({"a": "1", "b": "1"}, {"b": "1"}, {"b": "1"}, {"b": "1"}),
    "the child moved what the parent changed": (
        {"a": LINES},
        {"a": LINES.replace("two", "2")},
        {"b": LINES},
        {"b": LINES.replace("two", "2")},
    ),
    "the parent moved what the child changed": (
        {"a": LINES},
        {"b": LINES},
        {"a": LINES.replace("two", "2")},
        {"b": LINES.replace("two", "2")},
    ),
    "moved with a change, and changed elsewhere": (
        {"a": LINES},
        {"a": LINES.replace("one", "1")},
        {"b": LINES.replace("six", "6")},
        {"b": LINES.replace("one", "1").replace("six", "6")},
    ),
    "both moved it to the same place": ({"a": LINES}, {"b": LINES}, {"b": LINES}, {"b": LINES}),
    "a folder goes, but the parent put something in": (
        {"d/a": "1"},
        {"d/a": "1", "d/new": "n"},
        {},
        {"d/new": "n"},
    ),
    "the parent removed the folder that the child adds to": (
        {"d/a": "1", "x": "1"},
        {"x": "1"},
        {"d/a": "1", "d/new": "n", "x": "1"},
        {"d/new": "n", "x": "1"},
    ),
    "a file becomes a folder": ({"a": "1"}, {"a": "1"}, {"a/b": "2"}, {"a/b": "2"}),
    "a link is changed by one": ({"a": "->x"}, {"a": "->x"}, {"a": "->y"}, {"a": "->y"}),
}


@pytest.mark.parametrize("name", CLEAN)
def test_what_fits_together_is_merged(bench: Bench, name: str) -> None:
    base, ours, theirs, wanted = CLEAN[name]
    merged = bench.merge(base, ours, theirs)
    assert told(merged) == {}
    assert bench.result(ours, merged) == wanted


CONFLICTS = {
    "the same line": (
        {"a": LINES},
        {"a": LINES.replace("one", "A")},
        {"a": LINES.replace("one", "B")},
        {"a": ConflictKind.CONTENT},
    ),
    "both made it": ({}, {"a": "1"}, {"a": "2"}, {"a": ConflictKind.CREATE}),
    "the child deleted what the parent changed": (
        {"a": "1"},
        {"a": "2"},
        {},
        {"a": ConflictKind.DELETE},
    ),
    "the parent deleted what the child changed": (
        {"a": "1"},
        {},
        {"a": "2"},
        {"a": ConflictKind.DELETE},
    ),
    "no text": (
        {"a": "\0 1"},
        {"a": "\0 2"},
        {"a": "\0 3"},
        {"a": ConflictKind.BINARY},
    ),
    "moved to two places": (
        {"a": LINES},
        {"b": LINES},
        {"c": LINES},
        {"a": ConflictKind.RENAME},
    ),
    "moved and changed, and the same line changed": (
        {"a": LINES},
        {"a": LINES.replace("one", "A")},
        {"b": LINES.replace("one", "B")},
        {"a": ConflictKind.RENAME},
    ),
    "two links": ({"a": "->x"}, {"a": "->y"}, {"a": "->z"}, {"a": ConflictKind.CONTENT}),
    "a link and a text": ({"a": "1"}, {"a": "->y"}, {"a": "2"}, {"a": ConflictKind.CONTENT}),
    "a file where the parent has made a folder": (
        {},
        {"a/b": "1"},
        {"a": "2"},
        {"a": ConflictKind.CREATE},
    ),
    "a file for a folder in which the parent put something": (
        {"a/b": "1"},
        {"a/b": "1", "a/c": "1"},
        {"a": "2"},
        {"a": ConflictKind.CREATE},
    ),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_does_not_fit_is_a_conflict_of_its_kind(bench: Bench, name: str) -> None:
    base, ours, theirs, kinds = CONFLICTS[name]
    assert told(bench.merge(base, ours, theirs)) == kinds


def test_a_file_where_the_parent_needs_a_folder_is_told_for_what_is_in_it(bench: Bench) -> None:
    merged = bench.merge({"x": "1"}, {"x": "1", "a": "file"}, {"x": "1", "a/b": "1"})
    assert set(told(merged).values()) == {ConflictKind.CREATE}


def test_without_merging_of_contents_every_double_change_is_a_conflict(bench: Bench) -> None:
    base, ours, theirs, _ = CLEAN["different lines of one text"]
    merged = bench.merge(base, ours, theirs, MergeStrategy.SEQUENTIAL_APPLY)
    assert told(merged) == {"a": ConflictKind.CONTENT}
    for name in ("both made it", "the child deleted what the parent changed"):
        base, ours, theirs, kinds = CONFLICTS[name]
        assert told(bench.merge(base, ours, theirs, MergeStrategy.SEQUENTIAL_APPLY)) == kinds


@pytest.mark.parametrize("name", ["the same line", "both made it", "no text", "two links"])
def test_the_last_wins_without_a_conflict(bench: Bench, name: str) -> None:
    base, ours, theirs, _ = CONFLICTS[name]
    merged = bench.merge(base, ours, theirs, MergeStrategy.LAST_WINS)
    assert told(merged) == {}
    assert bench.result(ours, merged) == theirs


# --- against git ------------------------------------------------------------------------------

_NAMES = st.sampled_from(["a", "b", "c", "d/x", "d/y"])
_TEXTS = st.lists(st.sampled_from(["p\n", "q\n", "r\n", "s\n"]), min_size=1, max_size=6).map(
    "".join
)
_TREES = st.dictionaries(_NAMES, _TEXTS, max_size=4)


@settings(max_examples=25, deadline=None)
@given(base=_TREES, ours=_TREES, theirs=_TREES)
@example(base={"b": "p\nr\n"}, ours={"b": "q\np\n"}, theirs={"a": "p\n", "c": "p\n"})
def test_wherever_we_merge_git_does_the_same(base: Files, ours: Files, theirs: Files) -> None:
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder, "scratch"))
        merged = bench.merge(base, ours, theirs)
        if merged.conflicts:
            return
        theirs_too = _merged_by_git(Path(folder, "repo"), base, ours, theirs)
        assert theirs_too is None or bench.result(ours, merged) == theirs_too


def _merged_by_git(repo: Path, base: Files, ours: Files, theirs: Files) -> dict[str, str] | None:
    """None where git sees a conflict: it also compares files of which only one was moved."""
    repo.mkdir()
    git(repo, "init", "-q", "-b", "base")
    commit(repo, base)
    for name, files in (("ours", ours), ("theirs", theirs)):
        git(repo, "checkout", "-q", "-f", "-b", name, "base")
        commit(repo, files)
    # Without renames: on texts this small everything resembles everything.
    done = git(repo, "-c", "merge.renames=false", "merge-tree", "--write-tree", "ours", "theirs")
    if done.returncode:
        return None
    tree = done.stdout.split()[0].decode()
    names = git(repo, "ls-tree", "-r", "--name-only", "-z", tree).stdout.split(b"\0")[:-1]
    return {
        name.decode(): git(repo, "cat-file", "blob", f"{tree}:{name.decode()}").stdout.decode()
        for name in names
    }


def commit(repo: Path, files: Files) -> None:
    git(repo, "rm", "-rq", "--ignore-unmatch", ".")
    for name, content in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(content)
    git(repo, "add", "-A")
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(repo, *identity, "commit", "-q", "--allow-empty", "-m", "x")


def git(repo: Path, *args: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(["git", "-C", str(repo), *args], capture_output=True, check=False)
