"""Files that commits of the project and a plan changed alike: how both sides are told, and the
result of taking one of them.

git names up to three versions of each: where both began, the project's and the plan's. A side is
taken where the two dispute; what only the other one changed in the same text stays. What is no text
is taken whole, and a path that this side does not have goes.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from cleveragents.domain.conflicts import Side, shown_lines
from cleveragents.domain.threeway import Region, lines_of, three_way, two_way
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import GITLINK, text_of
from cleveragents.infrastructure.sandbox.git.views import GitView

_BASE, _OURS, _THEIRS = b"1", b"2", b"3"
_FILE = (b"100644", b"100755")
_SNIFFED = 8_000
# More than this nobody reads in an error; `git merge` of the plan's branch shows it all.
_MOST_PLACES = 3
_NOTHING = b"0 " + b"0" * 40


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
