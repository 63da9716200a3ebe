"""A new user's day, typed to the letter: a plan is made, run, looked at, taken back by a word,
corrected and applied; a week later one looks again, and cleans up.

`live` types it and gives back each screen; `demo/day.py` makes the pictures of the docs of them.
"""

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.support.agents import clean_environment
from tests.support.screens import Screen, Terminal

ASKED = "[y/N]:"
WEEK = timedelta(days=7, hours=1)
DISCOUNT = """\
name: discount
description: Ten percent off, in the code and in the orders
resources:
  code: {type: git-checkout, path: .}
  orders: {type: sqlite, path: shop.db}
steps:
  - name: lower the price
    tool: file.write
    with: {resource: code, path: price.py, content: "price = 90\\n"}
  - name: lower the orders
    tool: sql.execute
    with: {resource: orders, sql: "UPDATE orders SET total = total - 90"}
  - name: print a list for customers
    tool: shell
    with: {resource: code, command: "seq 40 | sed 's/$/ pieces: ask us/' > prices.txt"}
"""
TENTH = """\
name: lower the orders
tool: sql.execute
with: {resource: orders, sql: "UPDATE orders SET total = total * 9 / 10"}
"""


class Page(NamedTuple):
    """What is typed, what a question is answered with, and what the screen must say by then.

    `paged` is longer than the screen, and is turned through; `later` comes after a week."""

    name: str
    typed: str
    says: tuple[str, ...]
    answer: str = ""
    paged: bool = False
    later: bool = False


DAY = [
    Page("make", "agents plan use ../discount.yaml",
         ("discount-1", "git-checkout", "next: agents plan execute")),
    Page("run", "agents plan execute",
         ("lower the price", "discount-1 is finished", "next: agents plan apply")),
    Page("look", "agents plan diff", ("+price = 90", "-price = 100", "price.py"), paged=True),
    Page("list", "agents plan checkpoint list",
         ("0  ", "lower the orders", "● here", "back to one: agents plan rollback 2")),
    Page("back", "agents plan rollback price",
         ("Preview", "orders:shop.db", "restored", "Rollback complete", "undo it: agents plan"),
         answer="y"),
    Page("on", "agents plan resume", ("discount-1 is finished",)),
    Page("correct", "agents plan correct orders -g 'ten percent' --step-file ../tenth.yaml",
         ("total - 90", "total * 9 / 10", "agents plan apply"), answer="y"),
    Page("apply", "agents plan apply",
         ("branch main", "Applied", "Apply complete: 3 files"), answer="y"),
    Page("status", "agents plan status", ("applied 1 week ago", "lower the orders"), later=True),
    Page("again", "agents plan show orders",
         ("total * 9 / 10", "orders:shop.db", "those of all steps together")),
    Page("room", "agents store status", ("agents prune --older-than",)),
    Page("clean", "agents prune --older-than 7d", ("discount-1", "1 plan"), answer="y"),
    Page("over", "agents plan list", ("no plans yet: agents plan use",)),
]  # fmt: skip


class Shown(NamedTuple):
    """What was on the screen at the end, and where there was a question, when it was asked."""

    page: Page
    screens: tuple[Screen, ...]

    @property
    def texts(self) -> list[str]:
        return [steady(screen.text) for screen in self.screens]

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def live() -> list[Shown]:
    with a_shop() as (shop, environ), Terminal(shop, environ) as terminal:
        return [_shown(page, terminal, shop) for page in DAY]


def _shown(page: Page, terminal: Terminal, shop: Path) -> Shown:
    screens = [screen.with_home(str(shop.parent)) for screen in _screens(page, terminal, shop)]
    return Shown(page, tuple(screens))


def _screens(page: Page, terminal: Terminal, shop: Path) -> tuple[Screen, ...]:
    if page.later:
        let_pass(shop.parent / ".cleveragents", WEEK)
    terminal.clear("$ ")
    if page.paged:
        terminal.press(page.typed + "\r")
        screen = terminal.wait_for("\n:")  # where `less` waits for the next key
        terminal.finish("q")
        return (screen,)
    if not page.answer:
        return (terminal.enter(page.typed),)
    terminal.press(page.typed + "\r")
    question = terminal.wait_for(ASKED)
    terminal.clear(question.text.splitlines()[-1] + " ")
    return question, terminal.finish(page.answer + "\r")


@contextmanager
def a_shop() -> Iterator[tuple[Path, dict[str, str]]]:
    # Short and always as long, wherever we are: paths are part of what fits on a line.
    with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as home:
        shop = Path(home) / "shop"
        shop.mkdir()
        (shop.parent / "discount.yaml").write_text(DISCOUNT)
        (shop.parent / "tenth.yaml").write_text(TENTH)
        (shop / "price.py").write_text("price = 100\n")
        (shop / ".gitignore").write_text("shop.db\n")
        with closing(sqlite3.connect(shop / "shop.db")) as database:
            database.executescript(
                "CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER);"
                " INSERT INTO orders (total) VALUES (100), (250)"
            )
        places = (str(Path(sys.executable).parent), os.environ["PATH"])
        environ = {**clean_environment(Path(home)), "PATH": os.pathsep.join(places)}
        for words in (
            ("init", "-q", "-b", "main"),
            ("config", "user.name", "You"),
            ("config", "user.email", "you@example.org"),
            ("add", "-A"),
            ("commit", "-qm", "A shop"),
        ):
            subprocess.run(["git", *words], cwd=shop, env=environ, check=True)
        yield shop, environ


def let_pass(data_folder: Path, time: timedelta) -> None:
    """All that is on record happened so much earlier."""
    with closing(sqlite3.connect(data_folder / "cleveragents.db")) as database:
        tables = [
            row[0]
            for row in database.execute("select name from sqlite_master where type = 'table'")
        ]
        for table in tables:
            columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
            for column in (name for name in columns if name.endswith("_at")):
                _move(database, table, column, time)
        database.commit()


def _move(database: sqlite3.Connection, table: str, column: str, time: timedelta) -> None:
    query = f"select rowid, {column} from {table} where {column} is not null"
    for row, text in database.execute(query).fetchall():
        earlier = (datetime.fromisoformat(text) - time).isoformat(timespec="microseconds")
        database.execute(f"update {table} set {column} = ? where rowid = ?", (earlier, row))


_DIFFERS = (
    (re.compile(r"\bpreferred, .*"), "preferred, by kernel: writes, processes"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "14:56:02"),
    (re.compile(r"\b\d\d:\d\d UTC\b"), "14:56 UTC"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "2026-01-31"),
    (re.compile(r"\b\d+\.\d s\b"), "0.1 s"),
    (re.compile(r"\b[0-9a-f]{7}([0-9a-f]{5})?\b"), "0123456"),
    (re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"), "01M7NTTBKQSEWHXR591WZZDNBG"),
    (re.compile(r"\b(?=[0-9A-Z]*[A-Z])[0-9A-HJKMNP-TV-Z]{4}\b"), "7W3K"),
    (re.compile(r" *\b\d+(\.\d)? [kM]B\b"), " 1.0 MB"),
)


def steady(text: str) -> str:
    """The same for every run: times, endings of ids and sizes are others each time."""
    for pattern, shown in _DIFFERS:
        text = pattern.sub(shown, text)
    return text
