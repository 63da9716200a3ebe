"""Owns the demo's little world: a real git repository, a feed of tax rates, a home of its own."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ACTION = ROOT / "demo/actions/add-discount.yaml"
MARK = ".made-by-the-demo"
BEFORE_THE_GENERATOR = "before shell generate the rates"
AFTER_THE_GENERATOR = "after shell generate the rates"

FULL_FEED = {"at": 0.20, "de": 0.19, "fr": 0.20}
BROKEN_FEED: dict[str, float] = {}

FILES = {
    "shop/__init__.py": '"""A small shop."""\n\nfrom shop.prices import gross\n',
    "shop/prices.py": (
        '"""What things cost."""\n\n'
        "from importlib import import_module\n\n\n"
        "def gross(net: float, country: str) -> float:\n"
        '    return net * (1 + import_module(f"shop.rates.{country}").RATE)\n'
    ),
    "shop/rates/at.py": "RATE = 0.2\n",
    "shop/rates/de.py": "RATE = 0.19\n",
    "shop/rates/fr.py": "RATE = 0.196  # before the reform\n",
    "tests/__init__.py": "",
    "tests/test_prices.py": (
        "import unittest\n\n"
        "from shop import gross\n\n\n"
        "class Prices(unittest.TestCase):\n"
        "    def test_every_country_has_a_rate(self):\n"
        '        for country in ("at", "de", "fr"):\n'
        "            self.assertGreater(gross(100, country), 100)\n"
    ),
    "tools/make_rates.py": (
        "#!/usr/bin/env python3\n"
        '"""Replace the modules in shop/rates by what the feed says."""\n\n'
        "import json\n"
        "import pathlib\n"
        "import sys\n\n"
        'folder = pathlib.Path("shop/rates")\n'
        'for old in folder.glob("*"):\n'
        "    old.unlink()\n"
        "rates = json.loads(pathlib.Path(sys.argv[1]).read_text())\n"
        "for country, rate in rates.items():\n"
        '    (folder / f"{country}.py").write_text(f"RATE = {rate}\\n")\n'
        '(folder / "flags.bin").write_bytes("".join(rates).encode() * 100)\n'
    ),
}
# No text, no line end: bytes that must come back as they were.
FLAGS = bytes(range(256)) * 12


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
        self._feed = folder / "feed" / "rates.json"
        self.environment = self._environment(colours=colours)

    def build(self) -> None:
        self._clear()
        for made in (self.shop, self.home, self._feed.parent):
            made.mkdir(parents=True)
        (self.folder / MARK).touch()
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Demo\n\temail = demo@example.com\n[init]\n\tdefaultBranch = main\n"
        )
        for name, text in FILES.items():
            path = self.shop / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.shop / "tools/make_rates.py").chmod(0o755)
        (self.shop / "shop/rates/flags.bin").write_bytes(FLAGS)
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "The shop")):
            self.output("git", *words)
        self.write_feed(BROKEN_FEED)

    def write_feed(self, rates: dict[str, float]) -> None:
        self._feed.write_text(json.dumps(rates) + "\n")

    def output(self, *argv: str) -> str:
        """What a command says when it is only asked."""
        done = subprocess.run(
            argv, cwd=self.shop, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def plan_id(self) -> str:
        answer = json.loads(self.output("agents", "plan", "list", "--format", "json"))
        return answer["data"]["plans"][0]["plan_id"]

    def sandbox(self, plan_id: str) -> Path:
        answer = json.loads(self.output("agents", "plan", "status", plan_id, "--format", "json"))
        return Path(answer["data"]["sandboxes"][0]["path"])

    def _clear(self) -> None:
        """Only what an earlier demo made: a folder of anybody else's is not ours to remove."""
        if self.folder.exists() and not (self.folder / MARK).exists():
            raise AssertionError(f"{self.folder} is no demo's; remove it or name another folder")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _environment(self, *, colours: bool) -> dict[str, str]:
        strange = ("GIT_", "CLEVERAGENTS_", "PYTHON", "XDG_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(strange)}
        # The shop's `python` is ours, and leaves no bytecode among its files.
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
        ours = {
            "HOME": str(self.home),
            "PATH": path,
            "COLUMNS": str(self.width),
            "PYTHONDONTWRITEBYTECODE": "1",
            "RATES_FEED": str(self._feed),
        }
        return kept | ours | ({"FORCE_COLOR": "1"} if colours else {})


def fingerprints(folder: Path) -> dict[str, str]:
    """The sha256 and the mode of every file below `folder`, git's own left out."""
    found = sorted(p for p in folder.rglob("*") if p.is_file() and ".git" not in p.parts)
    return {
        str(path.relative_to(folder)): f"{_sha256(path)} {path.stat().st_mode & 0o777:o}"
        for path in found
    }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
