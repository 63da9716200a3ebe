"""The day of a new user in a window of 100 by 30: what every screen says, and that it fits.

The pictures of docs/day.md are of the same day; `python demo/day.py` makes them anew.
"""

import html
import re
from pathlib import Path

import pytest
from tests.support.new_user import ASKED, DAY, Shown, a_shop, live, steady
from tests.support.screens import Terminal

ROOT = Path(__file__).resolve().parents[2]
ULID = re.compile(r"(?<![\w/])[0-7][0-9A-HJKMNP-TV-Z]{25}(?![\w/])")
AGAIN = "run `.venv/bin/python demo/day.py`"


@pytest.fixture(scope="module")
def day() -> list[Shown]:
    return live()


def test_every_screen_says_what_it_is_for(day: list[Shown]) -> None:
    missing = [(s.page.typed, word, s.text) for s in day for word in s.page.says
               if word not in s.text]  # fmt: skip
    assert missing == []
    assert [s.page for s in day] == DAY


def test_nothing_is_wider_than_the_window_or_goes_over_its_upper_edge(day: list[Shown]) -> None:
    for shown in day:
        for screen in shown.screens:
            assert screen.too_wide == (), shown.page.typed
            # The pager writes below the line that was typed, which makes room for it.
            assert screen.scrolled <= (1 if shown.page.paged else 0), (shown.page.typed, shown.text)


def test_no_screen_shows_an_id_that_nobody_would_type(day: list[Shown]) -> None:
    assert [shown.page.typed for shown in day if ULID.search(shown.text)] == []


def test_steps_that_ran_before_ones_eyes_are_not_listed_again(day: list[Shown]) -> None:
    ran = [shown for shown in day if "plan execute" in shown.page.typed]
    assert ran
    for shown in ran:
        assert shown.text.count("lower the price ") == 1, shown.text


def test_what_is_kept_in_the_docs_is_what_is_on_the_screens(day: list[Shown]) -> None:
    kept = (ROOT / "docs/evidence/day.txt").read_text("utf-8")
    assert kept == "\n\n".join(text for shown in day for text in shown.texts) + "\n", AGAIN


def test_the_page_shows_every_picture_and_each_is_of_what_is_kept() -> None:
    kept = _words((ROOT / "docs/evidence/day.txt").read_text("utf-8"))
    page = (ROOT / "docs/day.md").read_text("utf-8")
    pictures = sorted((ROOT / "docs/images/day").glob("*.svg"))
    assert set(re.findall(r"\(images/day/(.*?\.svg)\)", page)) == {path.name for path in pictures}
    assert len(pictures) == len(DAY) + sum(1 for one in DAY if one.answer)
    for picture in pictures:
        drawn = re.findall(r"<text [^>]*>([^<]*)</text>", picture.read_text("utf-8"))
        said = [_words(steady(html.unescape(text).replace("\xa0", " "))) for text in drawn]
        assert [text for text in said if text not in kept and text != "agents"] == [], AGAIN


def _words(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _tasks() -> list[tuple[list[str], int, str, int]]:
    """Of the page's table: what had to be typed and how many keys that was, and the same now."""
    page = (ROOT / "docs/day.md").read_text("utf-8")
    rows = re.findall(r"^\| .*? \| (`.*?`) \| (\d+) \| `(.*?)` \| (\d+) \|$", page, re.MULTILINE)
    return [(re.findall(r"`(.*?)`", old), int(a), new, int(b)) for old, a, new, b in rows]


def test_the_keys_of_the_twelve_most_frequent_tasks_are_counted_by_typing_them() -> None:
    counted: list[int] = []
    with a_shop() as (shop, environ), Terminal(shop, {**environ, "PAGER": "cat"}) as terminal:
        terminal.enter("agents plan use ../discount.yaml")
        for _, _, line, _ in _tasks():
            if line == "agents plan discard":
                terminal.enter("agents plan use ../discount.yaml")
            before = terminal.pressed
            terminal.clear("$ ")
            terminal.press(line + "\r")
            counted.append(terminal.pressed - before)
            screen = terminal.wait_for(ASKED, prompt=True)
            if ASKED in screen.text:
                terminal.clear("")
                screen = terminal.finish("y\r")
            assert "Error" not in screen.text, screen.text
            assert terminal.enter("echo code $?").text.splitlines()[-2] == "code 0", line
    assert counted == [keys for *_, keys in _tasks()]


def test_the_keys_before_are_those_of_the_lines_and_so_are_the_sums() -> None:
    tasks = _tasks()
    assert len(tasks) == 12
    assert [sum(len(line) + 1 for line in old) for old, *_ in tasks] == [a for _, a, *_ in tasks]
    sums = f"| all twelve | | {sum(t[1] for t in tasks)} | | {sum(t[3] for t in tasks)} |"
    assert sums in (ROOT / "docs/day.md").read_text("utf-8")
