"""What a program leaves of its screen is undone, and what it drew is kept as text."""

from cleveragents.infrastructure.terminal.plain_text import plain_text
from cleveragents.infrastructure.terminal.user_terminal import LeftOn


def undoing(*pieces: bytes) -> bytes:
    left = LeftOn()
    for piece in pieces:
        left.see(piece)
    return left.undoing


def test_what_a_program_switched_off_again_needs_nothing() -> None:
    assert undoing(b"\x1b[?1049h\x1b[?25lhello\x1b[?25h\x1b[?1049l") == b""
    assert undoing(b"only text \x1b[31mred\x1b[0m") == b""


def test_what_it_left_is_undone_the_last_first() -> None:
    left = b"\x1b[?1049h\x1b[?1000;1006h\x1b[?25l"
    assert undoing(left) == b"\x1b[?1006l\x1b[?1000l\x1b[?1049l\x1b[?25h"


def test_a_sequence_may_come_in_pieces_and_counts_once() -> None:
    whole = b"\x1b[?2004h\x1b[>1u"
    for cut in range(1, len(whole)):
        assert undoing(whole[:cut], whole[cut:]) == b"\x1b[<u\x1b[?2004l", cut


def test_keyboards_are_taken_off_as_often_as_they_were_put_on() -> None:
    assert undoing(b"\x1b[>1u", b"\x1b[>5u", b"\x1b[<u") == b"\x1b[<u"
    assert undoing(b"\x1b[<u") == b""


def test_drawn_text_is_read_without_its_drawing() -> None:
    drawn = b"\x1b]0;title\x07\x1b[2J\x1b[1;31mred\x1b[0m\r\n10%\r20%\r30%\r\nend\x1b(B\x08"

    assert plain_text(drawn) == "red\n30%\nend"
    assert plain_text(b"plain \xff text\n") == "plain \\xff text\n"
    assert plain_text(b"a\r\n\r\n\r\n\r\nb") == "a\n\nb"
