"""Makes docs/images/demo.svg from a real run: an agent breaks code and data, one rollback."""

import argparse
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from world import ROOT, THE_MIGRATION, World

WIDTH, TALLEST = 100, 60
PICTURE = ROOT / "docs/images/demo.svg"
# What a live list does before it is drawn again: back to the line's start, up, erase.
REDRAWN = re.compile(r"(?:\r|\x1b\[\d*[AK])*\x1b\[\d*A(?:\r|\x1b\[\d*[AK])*")
CURSOR = re.compile(r"\x1b\[\?25[hl]")
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
THEME = TerminalTheme(
    (22, 27, 34),
    (214, 220, 228),
    [
        (72, 79, 88), (255, 123, 114), (86, 211, 100), (227, 179, 65),
        (88, 166, 255), (188, 140, 255), (86, 212, 221), (200, 206, 214),
    ],
    [
        (110, 118, 129), (255, 161, 152), (110, 231, 135), (242, 204, 96),
        (121, 192, 255), (210, 168, 255), (118, 227, 234), (240, 246, 252),
    ],
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the picture of the README.")
    parser.add_argument("--check", action="store_true", help="only say whether it is still true")
    options = parser.parse_args()
    # Short, wherever we are: a long path would break a line elsewhere.
    with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as folder:
        svg = drawn(record(World(Path(folder) / "demo", width=WIDTH, colours=True)))
    if not options.check:
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_text(svg)
    elif without_ids(svg) != without_ids(PICTURE.read_text()):
        sys.exit("the picture shows what is no longer printed; run `python demo/picture.py`")


def drawn(lines: list[Text], name: str = "demo") -> str:
    if len(lines) > TALLEST:
        raise SystemExit(f"{len(lines)} lines are too many for a picture, at most {TALLEST}")
    console = Console(width=WIDTH, record=True, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    for line in lines:
        console.print(line, soft_wrap=True)
    svg = console.export_svg(title="agents", theme=THEME, code_format=svg_format(), unique_id=name)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def without_ids(svg: str) -> str:
    return re.sub(r"\b(?:[0-9A-Z]{26}|[0-9A-HJKMNP-TV-Z]{4,5})\b", "ID", svg)


def svg_format() -> str:
    """The usual frame, with fonts that are there already instead of ones to be fetched."""
    without_fetching = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return without_fetching.replace("Fira Code, monospace", FONTS)


def record(world: World) -> list[Text]:
    world.build()
    world.output("agents", "plan", "use", world.action)
    lines: list[Text] = []
    for words in (
        ("plan", "execute", "latest"),
        ("plan", "rollback", "--yes", "latest", THE_MIGRATION),
    ):
        lines += [Text(f"$ agents {shlex.join(words)}", style="bold"), *typed(world, words), Text()]
    return lines[:-1]


def typed(world: World, words: tuple[str, ...]) -> list[Text]:
    """What a person sees who types this on a terminal."""
    ours, theirs = pty.openpty()
    environment = world.environment | {"TERM": "xterm-256color", "LINES": "50"}
    process = subprocess.Popen(
        ["agents", "--format", "rich", *words],
        **{"cwd": world.shop, "env": environment, "stdout": theirs, "stderr": theirs},
    )
    os.close(theirs)
    seen = b""
    while piece := _read(ours):
        seen += piece
    os.close(ours)
    process.wait()
    text = CURSOR.sub("", seen.decode()).replace("\r\n", "\n")
    text = text.replace(str(world.shop), "~/shop")  # the same wherever it was recorded
    last_frame = REDRAWN.split(text)[-1]
    return [line for line in Text.from_ansi(last_frame.strip("\r\n")).split("\n")]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how a terminal says that nobody is left on its other side
        return b""


if __name__ == "__main__":
    main()
