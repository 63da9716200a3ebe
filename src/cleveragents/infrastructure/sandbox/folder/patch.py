"""The words of a patch in git's style: quoted names, modes, and hunks of lines."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

# More lines than this between equal ends are shown as replaced, not compared line by line.
_COMPARED_LINES = 4000
_CONTEXT = 3
_NO_NEWLINE = "\n\\ No newline at end of file\n"
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}

_Opcode = tuple[str, int, int, int, int]


def lines_of(data: bytes) -> list[str]:
    """Lines with their ends, which are newlines and nothing else."""
    *whole, rest = data.split(b"\n")
    lines = [*(line + b"\n" for line in whole), *([rest] if rest else [])]
    return [line.decode("utf-8", "backslashreplace") for line in lines]


def quoted(path: bytes) -> str:
    """As git writes a name: in quotes with escapes where a line of text could not hold it."""
    text = path.decode("utf-8", "surrogateescape")
    if text.isprintable() and not set(text) & {'"', "\\"}:
        return text
    escaped = (_ESCAPES.get(b, chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in path)
    return '"' + "".join(escaped) + '"'


def hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for group in _grouped(_opcodes(old, new)):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (_line(" ", line) for line in old[i:j])
                continue
            yield from (_line("-", line) for line in old[i:j])
            yield from (_line("+", line) for line in new[k:m])


def _line(sign: str, line: str) -> str:
    return sign + (line if line.endswith("\n") else line + _NO_NEWLINE)


def _range(start: int, end: int) -> str:
    length = end - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[_Opcode]:
    """Only what lies between equal ends is compared, so that a small edit costs little."""
    head = _common(zip(old, new, strict=False))
    room = min(len(old), len(new)) - head
    tail = _common(zip(old[::-1][:room], new[::-1][:room], strict=True))
    i, j, k, m = head, len(old) - tail, head, len(new) - tail
    middle: list[_Opcode] = []
    if max(j - i, m - k) > _COMPARED_LINES:
        middle = [("replace", i, j, k, m)]
    elif i < j or k < m:
        found = SequenceMatcher(None, old[i:j], new[k:m]).get_opcodes()
        middle = [(tag, a + i, b + i, c + k, d + k) for tag, a, b, c, d in found]
    equal_ends = ("equal", 0, head, 0, head), ("equal", j, len(old), m, len(new))
    return [equal_ends[0], *middle, equal_ends[1]]


def _common(pairs: Iterable[tuple[str, str]]) -> int:
    count = 0
    for one, two in pairs:
        if one != two:
            break
        count += 1
    return count


def _grouped(opcodes: list[_Opcode]) -> Iterator[list[_Opcode]]:
    """Changes with their context; those with little between them share a hunk."""
    (_, _, j, _, m), (_, i, _, k, _) = opcodes[0], opcodes[-1]
    opcodes[0] = ("equal", max(0, j - _CONTEXT), j, max(0, m - _CONTEXT), m)
    last = opcodes[-1]
    opcodes[-1] = ("equal", i, min(last[2], i + _CONTEXT), k, min(last[4], k + _CONTEXT))
    group: list[_Opcode] = []
    for tag, i, j, k, m in opcodes:
        if tag == "equal" and j - i > 2 * _CONTEXT:
            yield [*group, ("equal", i, i + _CONTEXT, k, k + _CONTEXT)]
            group, i, k = [], j - _CONTEXT, m - _CONTEXT
        if i < j or k < m:
            group.append((tag, i, j, k, m))
    if any(tag != "equal" for tag, *_ in group):
        yield group
