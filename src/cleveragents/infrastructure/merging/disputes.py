"""One path that two sides disagree about: how both look, and what taking either comes to."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.conflicts import LeftOut, Side, hunks_of, shown_lines
from cleveragents.domain.subplan import Conflict, ConflictKind
from cleveragents.domain.threeway import Region, lines_of, three_way, two_way, undone
from cleveragents.infrastructure.files.entry import Entry, Kind, shown

Content = Callable[[Entry], bytes]
OURS_MARK, MIDDLE, THEIRS_MARK = b"<<<<<<< ours\n", b"=======\n", b">>>>>>> theirs\n"
LARGEST_TEXT = 32 * 1024 * 1024
_SNIFFED = 8000


class Dispute(Struct, frozen=True, kw_only=True):
    """`base` is what both began with, and for OVERWRITE what all children began with.

    `moved` says where ours and theirs have it now, if it was moved there. Taking theirs also `put`s
    other paths, staying with ours `drop`s paths that theirs had brought.
    Of a text, `draft` has both sides with marks between them, `answers` what each side comes to if
    it wins only where they disagree, and `regions` where that is.
    """

    path: bytes
    kind: ConflictKind
    base: Entry | None = None
    ours: Entry | None = None
    theirs: Entry | None = None
    moved: tuple[bytes | None, bytes | None] = (None, None)
    put: Mapping[bytes, Entry | None] = field(default_factory=dict[bytes, Entry | None])
    drop: tuple[bytes, ...] = ()
    regions: tuple[Region, ...] = ()
    answers: Mapping[Side, bytes] = field(default_factory=dict[Side, bytes])
    draft: bytes | None = None

    def told(self, resource: str) -> Conflict:
        disputed = [region for region in self.regions if region.disputed]
        hunks = hunks_of(disputed)
        return Conflict(
            resource=resource,
            path=shown(self.path),
            kind=self.kind,
            ours=_described(self.ours, self.moved[0], nothing=self._nothing),
            theirs=_described(self.theirs, self.moved[1], nothing=self._nothing),
            hunks=hunks,
            more=len(disputed) - len(hunks),
            editable=self.draft is not None,
            key=self._key(),
        )

    def left_out(self, side: Side) -> LeftOut:
        """What of this side is lost if the other one is taken."""
        pairs = [(r.ours, r.theirs) for r in self.regions if r.disputed]
        if side is Side.THEIRS:
            pairs = [(theirs, ours) for ours, theirs in pairs]
        gone = [line for mine, other in pairs for line in mine if line not in other]
        return LeftOut(path=shown(self.path), side=side, lines=shown_lines(gone), count=len(gone))

    @property
    def _nothing(self) -> str:
        return "nothing there" if self.base is None else "deleted"

    def _key(self) -> str:
        entries = (self.base, self.ours, self.theirs, *self.put.values())
        told = [(e.kind, e.mode, e.hash, e.target) if e else None for e in entries]
        text = repr((told, sorted(self.put), self.drop, self.moved))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def with_texts(dispute: Dispute, content: Content, *, whole: bool) -> Dispute:
    """The same with what can be said of its lines, if it is about texts.

    `whole`: whatever differs is disputed, and not only what both changed.
    """
    ours, theirs = _text(dispute.ours, content), _text(dispute.theirs, content)
    base = _text(dispute.base, content)
    if ours is None or theirs is None or (dispute.base is not None and base is None):
        return dispute
    if dispute.kind is ConflictKind.OVERWRITE:
        return _overwriting(dispute, base or [], ours, theirs)
    regions = two_way(ours, theirs)
    if base is not None and not whole:
        regions = _or_all(three_way(base, ours, theirs), regions)
    return replace(
        dispute,
        regions=tuple(regions),
        answers={
            Side.OURS: _joined(region.ours for region in regions),
            Side.THEIRS: _joined(region.theirs for region in regions),
        },
        draft=_draft(regions),
    )


def takes_back(base: Entry | None, ours: Entry, theirs: Entry, content: Content) -> bool:
    """Whether `theirs`, made from ours, undoes what ours had changed in base."""
    if (ours.kind, ours.hash, ours.target) == (theirs.kind, theirs.hash, theirs.target):
        return base is None or base.mode != ours.mode  # only the mode is not as it was
    if base is not None and (base.kind, base.hash, base.target) == (
        ours.kind,
        ours.hash,
        ours.target,
    ):
        return theirs.mode != ours.mode  # ours had changed no more than that
    old, mine, new = (_text(entry, content) for entry in (base, ours, theirs))
    if mine is None or new is None or (base is not None and old is None):
        return True  # there is no telling
    return bool(undone(old or [], mine, new))


def _overwriting(
    dispute: Dispute, base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> Dispute:
    kept = three_way(base, ours, theirs)
    return replace(
        dispute,
        regions=tuple(undone(base, ours, theirs)),
        answers={
            Side.OURS: _joined(region.ours for region in kept),
            Side.THEIRS: b"".join(theirs),
        },
        draft=_draft(two_way(ours, theirs)),
    )


def _or_all(regions: list[Region], every: list[Region]) -> list[Region]:
    """Git sees a conflict where the lines are too close to each other to be told apart."""
    return regions if any(region.disputed for region in regions) else every


def _draft(regions: Iterable[Region]) -> bytes:
    parts: list[bytes] = []
    for region in regions:
        if not region.disputed:
            parts.extend(region.ours)
            continue
        parts += [OURS_MARK, _ended(region.ours), MIDDLE, _ended(region.theirs), THEIRS_MARK]
    return b"".join(parts)


def _ended(lines: Iterable[bytes]) -> bytes:
    text = b"".join(lines)
    return text if not text or text.endswith((b"\n", b"\r")) else text + b"\n"


def _joined(parts: Iterable[Sequence[bytes]]) -> bytes:
    return b"".join(line for part in parts for line in part)


def _text(entry: Entry | None, content: Content) -> list[bytes] | None:
    if entry is None or entry.kind is not Kind.FILE or entry.size > LARGEST_TEXT:
        return None
    data = content(entry)
    return None if b"\0" in data[:_SNIFFED] else lines_of(data)


def _described(entry: Entry | None, moved: bytes | None, *, nothing: str) -> str:
    if moved is not None:
        return f"moved to {shown(moved)}"
    if entry is None:
        return nothing
    if entry.kind is Kind.DIR:
        return "a folder"
    if entry.kind is Kind.LINK:
        return f"a link to {shown(entry.target)}"
    return f"a file of {entry.size} bytes, mode {entry.mode & 0o7777:o}"
