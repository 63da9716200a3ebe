"""Lines of a screen: pieces of text with a meaning, cut to what there is room for."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from cleveragents.cli.render.blocks import Tone
from cleveragents.cli.render.palette import sgr
from cleveragents.cli.render.text import one_line, width_of

_BOLD, _REVERSE = "1", "7"


class Span(Struct, frozen=True):
    """Untrusted text is made safe where it becomes one (`span`)."""

    text: str
    tone: Tone = "plain"
    bold: bool = False


class Line(Struct, frozen=True):
    """A line that is `chosen` is drawn as a bar over the whole width."""

    spans: Sequence[Span] = ()
    chosen: bool = False


def span(text: str, tone: Tone = "plain", *, bold: bool = False) -> Span:
    return Span(one_line(text), tone, bold)


def line(*spans: Span, chosen: bool = False) -> Line:
    return Line(spans, chosen)


def cut(text: str, width: int) -> str:
    """At most so many columns, with a mark where something is left out."""
    if width_of(text) <= width:
        return text
    kept, used = "", 0
    for letter in text:
        used += width_of(letter)
        if used > width - 1:
            break
        kept += letter
    return f"{kept}…" if width > 0 else ""


def padded(text: str, width: int) -> str:
    """Exactly so many columns."""
    short = cut(text, width)
    return short + " " * (width - width_of(short))


def folded(each: Line, width: int) -> Sequence[Line]:
    """A line of one piece on as many as its words need; others are cut where they are drawn."""
    if len(each.spans) != 1 or width_of(each.spans[0].text) <= width:
        return [each]
    piece = each.spans[0]
    return [Line([Span(text, piece.tone, piece.bold)]) for text in _wrapped(piece.text, width)]


def _wrapped(text: str, width: int) -> Sequence[str]:
    lines, now = list[str](), ""
    for word in text.split():
        if now and width_of(now) + 1 + width_of(word) > width:
            lines.append(now)
            now = word
        else:
            now = f"{now} {word}" if now else word
    return [*lines, now]


def drawn(lines: Iterable[Line], width: int, *, colours: bool) -> list[str]:
    """Each as a terminal takes it: never wider than it is."""
    return [_drawn(each, width, colours=colours) for each in lines]


def _drawn(each: Line, width: int, *, colours: bool) -> str:
    text, room = "", width
    for piece in each.spans:
        shown = cut(piece.text, room)
        room -= width_of(shown)
        text += _styled(shown, piece, chosen=each.chosen, colours=colours)
    if each.chosen:
        text += f"\x1b[{_REVERSE}m{' ' * room}\x1b[0m"
    return text


def _styled(text: str, piece: Span, *, chosen: bool, colours: bool) -> str:
    """On the bar no colour is certain to be read; there is none then."""
    codes = [_REVERSE] if chosen else [sgr(piece.tone)] if colours and sgr(piece.tone) else []
    codes = [*codes, *([_BOLD] if piece.bold else [])]
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes and text else text
