"""Owns the demo's little world: a git repository, a database, an agent, a home of its own."""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ACTION = ROOT / "demo/actions/cents.yaml"
INTERN = ROOT / "demo/intern.py"
MARK = ".made-by-the-demo"
THE_MIGRATION = "decision 2: Bash python to_cents.py"
ADVICE = "19.99 EUR are 1999 cents, and invoice.py needs what you delete"
DATABASE = "shop.db"
ORDERS = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, who TEXT, total NUMERIC);"
    "INSERT INTO orders VALUES (1, 'Ann', 19.99), (2, 'Bob', 7.05), (3, 'Cem', 120.5)"
)

FILES = {
    ".gitignore": "*.db\n",
    "shop/__init__.py": '"""A small shop."""\n',
    "shop/euros.py": (
        '"""Money, in euros."""\n\n\n'
        "def shown(euros: float) -> str:\n"
        '    return f"{euros:.2f} EUR"\n'
    ),
    "shop/invoice.py": (
        '"""What an order comes to."""\n\n'
        "import os\n"
        "import sqlite3\n\n"
        "from shop.euros import shown\n\n\n"
        "def invoice(order: int) -> str:\n"
        '    with sqlite3.connect(os.environ.get("SHOP_DB", "shop.db")) as db:\n'
        '        found = db.execute("SELECT total FROM orders WHERE id = ?", (order,))\n'
        "        return shown(found.fetchone()[0])\n"
    ),
    "tests/__init__.py": "",
    "tests/test_invoice.py": (
        "import unittest\n\n"
        "from shop.invoice import invoice\n\n\n"
        "class Invoices(unittest.TestCase):\n"
        "    def test_every_order_comes_to_what_it_did(self):\n"
        "        found = [invoice(order) for order in (1, 2, 3)]\n"
        '        self.assertEqual(found, ["19.99 EUR", "7.05 EUR", "120.50 EUR"])\n'
    ),
}


class World:
    """Everything is below `folder`, which is made anew; nothing of the user's is read or written.

    `colours` makes the commands paint their output even where there is no terminal.
    """

    def __init__(self, folder: Path, *, width: int, colours: bool = False) -> None:
        self.folder = folder
        self.width = width
        self.shop = folder / "shop"
        self.home = folder / "home"
        self.action = os.path.relpath(ACTION, self.shop)
        self._bin = folder / "bin"
        self.environment = self._environment(colours=colours)

    def build(self) -> None:
        self._clear()
        for made in (self.shop, self.home, self._bin):
            made.mkdir(parents=True)
        (self.folder / MARK).touch()
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Demo\n\temail = demo@example.com\n[init]\n\tdefaultBranch = main\n"
        )
        for name, text in FILES.items():
            path = self.shop / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        with closing(sqlite3.connect(self.shop / DATABASE)) as database:
            # One transaction: SQLite counts them in the file, and a fresh copy counts one.
            database.executescript(f"BEGIN; {ORDERS}; COMMIT")
        shutil.copy(INTERN, self._bin / "intern")
        (self._bin / "intern").chmod(0o755)
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "A shop")):
            self.output("git", *words)

    def output(self, *argv: str) -> str:
        """What a command says when it is only asked."""
        done = subprocess.run(
            argv, cwd=self.shop, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def decision(self, title: str) -> str:
        """The id of the plan's decision that is described so."""
        tree = self._answer("plan", "tree", "latest")["tree"]
        (found,) = [one["id"] for one in tree["children"] if title in one["description"]]
        return found

    def in_sandboxes(self) -> dict[str, str]:
        """The fingerprints of what the plan works on."""
        sandboxes = self._answer("plan", "status", "latest")["sandboxes"]
        places = {one["resource"]: Path(one["path"]) for one in sandboxes}
        return fingerprints(places["code"]) | {DATABASE: fingerprint(places["db"])}

    def orders(self) -> list[float]:
        with closing(sqlite3.connect(self.shop / DATABASE)) as database:
            return [total for (total,) in database.execute("SELECT total FROM orders")]

    def _answer(self, *words: str) -> Any:
        return json.loads(self.output("agents", *words, "--format", "json"))["data"]

    def _clear(self) -> None:
        """Only what an earlier demo made: a folder of anybody else's is not ours to remove."""
        if self.folder.exists() and not (self.folder / MARK).exists():
            raise AssertionError(f"{self.folder} is no demo's; remove it or name another folder")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _environment(self, *, colours: bool) -> dict[str, str]:
        strange = ("GIT_", "CLEVERAGENTS_", "PYTHON", "XDG_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(strange)}
        # The shop's `python` is ours, and leaves no bytecode among its files.
        path = os.pathsep.join(
            [str(self._bin), str(Path(sys.executable).parent), kept.get("PATH", os.defpath)]
        )
        ours = {
            "HOME": str(self.home),
            "PATH": path,
            "COLUMNS": str(self.width),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GIT_PAGER": "cat",
        }
        return kept | ours | ({"FORCE_COLOR": "1"} if colours else {})


def fingerprints(folder: Path) -> dict[str, str]:
    """The sha256 and the mode of every file below `folder`, git's own left out."""
    found = sorted(p for p in folder.rglob("*") if p.is_file() and ".git" not in p.parts)
    return {str(path.relative_to(folder)): fingerprint(path) for path in found}


def fingerprint(path: Path) -> str:
    return f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mode & 0o777:o}"
