"""Owns the files that are made from the results; `--check` only says whether they are stale.

python -m benchmarks.peers.report [--check]
"""

import json
import re
import sys
from pathlib import Path

from benchmarks.peers import page as pages
from benchmarks.peers.figures import Results
from benchmarks.peers.plot import plot

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/evidence/results.json"
PAGE = ROOT / "docs/reference/comparison.md"
PLOT = ROOT / "docs/images/comparison.svg"
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- generated:comparison -->\n).*?(\n<!-- end -->)", re.DOTALL)


def main() -> None:
    if "--check" not in sys.argv[1:]:
        write()
        return
    stale = [path.name for path, text in made().items() if _text(path) != text]
    if stale:
        sys.exit(f"stale: {', '.join(stale)}; run `python -m benchmarks.peers.report`")


def write() -> None:
    for path, text in made().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def made() -> dict[Path, str]:
    """What each file should hold."""
    results: Results = json.loads(RESULTS.read_text(encoding="utf-8"))
    readme = _text(README)
    if len(BLOCK.findall(readme)) != 1:
        sys.exit("README.md has no place of its own for <!-- generated:comparison -->")
    block = pages.readme(results)
    return {
        PAGE: page(results),
        PLOT: plot(results),
        README: BLOCK.sub(lambda found: f"{found[1]}{block}{found[2]}", readme),
    }


def page(results: Results) -> str:
    return pages.page(results)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    main()
