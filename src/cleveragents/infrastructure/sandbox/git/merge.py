"""The merge of a plan's result with what the project has become: trees, and no files.

`git merge-tree` does it, and follows renamed files by itself, as `git merge` would.
Inside, since drivers may be configured for it, which are programs, and read what a step wrote.

Of what both changed alike, git names up to three versions: where both began, the project's and the
plan's. A side is taken where the two dispute; what only the other one changed in the same text
stays. What is no text is taken whole, and a path that this side does not have goes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from cleveragents.domain.conflicts import Side, shown_lines
from cleveragents.domain.errors import ApplyConflictError
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.threeway import Region, lines_of, three_way, two_way
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import GITLINK, own_commit, text_of
from cleveragents.infrastructure.sandbox.git.views import GitView

_BASE, _OURS, _THEIRS = b"1", b"2", b"3"
_FILE = (b"100644", b"100755")
_SNIFFED = 8_000
# More than this nobody reads in an error; `git merge` of the plan's branch shows it all.
_MOST_PLACES = 3
_NOTHING = b"0 " + b"0" * 40
_ATTRIBUTES = b".gitattributes"
# Both sides of more files than these are not told; their names are.
_MOST_TOLD = 5


class Version(Struct, frozen=True):
    mode: bytes
    oid: str


class Clash(Struct, frozen=True, kw_only=True):
    """One path, with the versions of it that there are."""

    path: bytes
    base: Version | None = None
    ours: Version | None = None
    theirs: Version | None = None

    @property
    def is_of_files(self) -> bool:
        """Not of a submodule, of which a side is more than an entry."""
        return all(v is None or v.mode != GITLINK for v in (self.base, self.ours, self.theirs))

    def side(self, side: Side) -> Version | None:
        return self.ours if side is Side.OURS else self.theirs


def clashes(listed: Sequence[bytes]) -> list[Clash]:
    """Out of what `git merge-tree -z` lists: a mode, an object and a stage, then the path."""
    found: dict[bytes, dict[bytes, Version]] = {}
    for line in listed:
        about, _, path = line.partition(b"\t")
        mode, oid, stage = about.split(b" ")
        found.setdefault(path, {})[stage] = Version(mode, oid.decode())
    return [
        Clash(path=path, base=at.get(_BASE), ours=at.get(_OURS), theirs=at.get(_THEIRS))
        for path, at in sorted(found.items())
    ]


def told(git: Git, clash: Clash) -> Iterator[str]:
    """Both sides in lines for people, the first few places of it."""
    if clash.ours is None or clash.theirs is None:
        if clash.ours is None and clash.theirs is not None:
            yield "the project has it no more, the plan has changed it"
        elif clash.ours is not None:
            yield "the plan has it no more, the project has changed it"
        return
    disputed = [region for region in _regions(git, clash) if region.disputed]
    for region in disputed[:_MOST_PLACES]:
        yield f"line {region.line}, the project:"
        yield from _quoted(region.ours)
        yield f"line {region.line}, the plan:"
        yield from _quoted(region.theirs)
    if len(disputed) > _MOST_PLACES:
        yield f"and {len(disputed) - _MOST_PLACES} more places"


def with_side(held: GitView, tree: str, found: Sequence[Clash], side: Side) -> str:
    """The merged tree, with this side wherever it was disputed."""
    git = held.git
    lines: list[bytes] = []
    for clash in found:
        version = _taken(git, clash, side)
        about = _NOTHING if version is None else version.mode + b" " + version.oid.encode()
        lines.append(about + b"\t" + clash.path)
    with held.trees.private_index(git) as private:
        private.run("read-tree", tree)
        private.run("update-index", "-z", "--index-info", input=b"".join(x + b"\0" for x in lines))
        return private.text("write-tree")


def _taken(git: Git, clash: Clash, side: Side) -> Version | None:
    version, regions = clash.side(side), _regions(git, clash)
    if version is None or not regions:
        return version
    parts = [region.ours if side is Side.OURS else region.theirs for region in regions]
    text = b"".join(line for part in parts for line in part)
    made = git.run("hash-object", "-w", "--stdin", "--no-filters", input=text).stdout
    return Version(version.mode, made.decode().strip())


def _regions(git: Git, clash: Clash) -> list[Region]:
    """Of texts; none where one side is none, or is no text."""
    texts = _texts(git, clash)
    if "ours" not in texts or "theirs" not in texts:
        return []
    if "base" not in texts:
        return two_way(texts["ours"], texts["theirs"])
    found = three_way(texts["base"], texts["ours"], texts["theirs"])
    if any(region.disputed for region in found):
        return found
    # Git takes lines for disputed that are too close to each other to be told apart.
    return two_way(texts["ours"], texts["theirs"])


def _texts(git: Git, clash: Clash) -> Mapping[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for name, version in (("base", clash.base), ("ours", clash.ours), ("theirs", clash.theirs)):
        if version is None or version.mode not in _FILE:
            continue
        data = git.run("cat-file", "blob", version.oid).stdout
        if b"\0" not in data[:_SNIFFED]:
            found[name] = lines_of(data)
    return found


def _quoted(lines: Sequence[bytes]) -> Iterator[str]:
    shown = shown_lines(lines) or ("(nothing)",)
    return (f"  {line}" for line in shown)


def name_of(clash: Clash) -> str:
    return text_of(clash.path)


def merged_tree(
    held: GitView, resource: PlanResource, ours: str, result: str, side: Side | None = None
) -> str:
    """Three-way merge of trees with exactly the plan's base between them. Conflicts raise, unless
    they are about files and a side is to be taken."""
    git = held.git
    base, present = _tree(git, resource.base), _tree(git, ours)
    if result == base:
        return present
    if present == base:
        return result
    # Made-up children of the base: HEAD may have been rewound, or know nothing of the base.
    mine = own_commit(git, present, "ours", resource.base)
    theirs = own_commit(git, result, "theirs", resource.base)
    args = ("merge-tree", "--write-tree", "-z", "--no-messages", mine, theirs)
    with held.trees.folder() as place:
        held.trees.materialise(git, ours, _needed(git, ours), place)
        there = git.at(str(place)).with_env({"GIT_WORK_TREE": str(place)})
        merged = there.run(*args, check=False)
        if merged.code not in (0, 1):
            there.run(*args)  # the same again, for its error
    tree, *listed = merged.stdout.split(b"\0")[:-1]
    if merged.code == 0:
        return tree.decode()
    found = clashes([line for line in listed if line])
    # Where file and folder collide, git makes up a second name out of ours.
    made_up = re.compile(f"~({mine}|{theirs})(_[0-9]+)?$")
    names = {clash.path: made_up.sub("", name_of(clash)) for clash in found}
    of_files = all(clash.is_of_files and names[clash.path] == name_of(clash) for clash in found)
    if side is not None and of_files:
        return with_side(held, tree.decode(), found, side)
    why = "the project changed the same lines since the plan was made"
    lines = _lines(git, {names[clash.path]: clash for clash in found})
    raise ApplyConflictError(
        resource.plan_id, resource.name, sorted(lines), why, sides=lines if of_files else {}
    )


def _lines(git: Git, found: Mapping[str, Clash]) -> Mapping[str, Sequence[str]]:
    first = set(sorted(found)[:_MOST_TOLD])
    return {name: [*told(git, clash)] if name in first else () for name, clash in found.items()}


def _needed(git: Git, ours: str) -> list[bytes]:
    """What git reads in the folder that it merges in: attributes, and whatever a driver needs."""
    listed = git.run("ls-tree", "-r", "-z", "--full-tree", ours).stdout.split(b"\0")[:-1]
    files = [line for line in listed if not line.startswith(b"160000")]
    paths = [line.partition(b"\t")[2] for line in files]
    if git.succeeds("config", "--get-regexp", r"^merge\..*\.driver$"):
        return paths
    return [path for path in paths if path.rpartition(b"/")[2] == _ATTRIBUTES]


def _tree(git: Git, commit: str) -> str:
    return git.text("rev-parse", "--verify", f"{commit}^{{tree}}")
