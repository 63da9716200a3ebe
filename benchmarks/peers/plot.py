"""Owns the picture of the comparison: three rows of bars, readable on light and on dark ground."""

import math
from collections.abc import Iterator
from html import escape

from benchmarks.peers import figures
from benchmarks.peers.figures import Results

LABELS, PANEL, GAP = 236, 206, 66
TOP, ROW, BAR = 74, 26, 16
WIDTH = LABELS + 3 * (PANEL + GAP)
LEAST_BAR = 3
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2933; }
  .title { font-weight: 600; } .small { font-size: 11px; fill: #52606d; }
  .own { font-weight: 600; } .bar { fill: #9aa5b1; } .bar.own { fill: #00897b; }
  .ground { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e7eb; } .small { fill: #9aa5b1; } .bar { fill: #616e7c; }
    .bar.own { fill: #26a69a; } .ground { fill: #12181f; }
  }
"""


def plot(results: Results) -> str:
    tools = [tool for tool in results["tools"] if not tool["missing"]]
    height = TOP + ROW * len(tools) + 34
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Time of a checkpoint and of a restore, and cases restored exactly</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        *_labels(tools),
        *_times(results, tools, 0, "checkpoint 1", "Checkpoint"),
        *_times(results, tools, 1, "restore 1", "Restore"),
        *_scores(results, tools),
        _text(12, height - 12, _foot(results), "small"),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _labels(tools: list[dict[str, str]]) -> Iterator[str]:
    for number, tool in enumerate(tools):
        yield _text(12, _middle(number), tool["name"], _mark(tool))


def _times(
    results: Results, tools: list[dict[str, str]], panel: int, measure: str, title: str
) -> Iterator[str]:
    files = figures.largest(results)
    taken = [figures.milliseconds(results, files, tool["key"], measure) for tool in tools]
    known = [value for value in taken if value is not None]
    low, high = math.log10(min(known)) - 0.3, math.log10(max(known))
    below = f"1 of {int(files):,} files changed; less is better".replace(",", " ")
    yield from _heading(panel, title, below)
    for number, (tool, value) in enumerate(zip(tools, taken, strict=True)):
        share = 0.0 if value is None else (math.log10(value) - low) / (high - low)
        yield from _bar(panel, number, share, figures.duration(value), _mark(tool))


def _scores(results: Results, tools: list[dict[str, str]]) -> Iterator[str]:
    total = sum(len(names) for names in results["groups"].values())
    yield from _heading(2, "Restored exactly", f"of {total} cases; more is better")
    for number, tool in enumerate(tools):
        told = figures.passed(results, tool["key"])
        share = 0.0 if told == "–" else int(told.partition("/")[0]) / total
        yield from _bar(2, number, share, told.partition("/")[0], _mark(tool))


def _heading(panel: int, title: str, below: str) -> Iterator[str]:
    yield _text(_left(panel), 30, title, "title")
    yield _text(_left(panel), 50, below, "small")


def _bar(panel: int, number: int, share: float, told: str, mark: str) -> Iterator[str]:
    long = max(LEAST_BAR, round(share * PANEL))
    x, y = _left(panel), TOP + ROW * number
    yield f'<rect class="bar {mark}" x="{x}" y="{y}" width="{long}" height="{BAR}" rx="2"/>'
    yield _text(x + long + 6, _middle(number), told, mark)


def _text(x: int, y: int, text: str, mark: str) -> str:
    return f'<text class="{mark}" x="{x}" y="{y}">{escape(text)}</text>'


def _foot(results: Results) -> str:
    day, load = results["begun"]["at"].split()[0], results["begun"]["load"]
    cores = results["machine"]["cores"]
    kind = results["machine"]["filesystem"]
    return f"make compare, {day}, {cores} cores, {kind}, load {load}; medians, times on a log scale"


def _mark(tool: dict[str, str]) -> str:
    return "own" if tool["ours"] else "other"


def _left(panel: int) -> int:
    return LABELS + panel * (PANEL + GAP)


def _middle(number: int) -> int:
    return TOP + ROW * number + BAR - 3
