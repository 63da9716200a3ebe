"""Owns how results are read and how a figure is written: never more digits than it deserves."""

from typing import Any

Results = dict[str, Any]
MEASURES = {
    "first": "from nothing to the first snapshot",
    "nothing": "checkpoint, nothing changed",
    "checkpoint 1": "checkpoint, 1 file changed",
    "checkpoint 1000": "checkpoint, 1000 files changed",
    "restore 1": "restore, 1 file changed",
    "restore 1000": "restore, 1000 files changed",
}
OURS = "ours"
COMMAND = "command"


def milliseconds(results: Results, files: str, key: str, measure: str) -> float | None:
    """The median, or nothing where the tool has none."""
    found = results["speed"].get(files, {}).get(key, {}).get(measure, {})
    return found.get("median_ms")


def duration(value: float | None) -> str:
    if value is None:
        return "–"
    if value >= 10000:
        return f"{value / 1000:.0f} s"
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def ratio(theirs: float, own: float) -> str:
    """How many times longer it took than ours; below one it was faster."""
    times = theirs / own
    if times >= 10:
        return f"{times:.0f}×"
    return f"{times:.1f}×" if times >= 0.1 else f"{times:.2f}×"


def size(count: int) -> str:
    if count >= 10 << 20:
        return f"{count / (1 << 20):.0f} MB"
    if count >= 1 << 20:
        return f"{count / (1 << 20):.1f} MB"
    return f"{count / 1024:.0f} KB"


def space(results: Results, key: str) -> str:
    for by_tool in results["speed"].values():
        found = by_tool.get(key, {}).get("space")
        if found:
            return size(found["bytes"])
    return "–"


def passed(results: Results, key: str, group: str | None = None) -> str:
    """Cases passed by cases tried; the engine is judged through the command."""
    verdicts = results["fidelity"].get(COMMAND if key == OURS else key)
    if verdicts is None:
        return "–"
    names = results["groups"][group] if group else list(verdicts)
    return f"{sum(not verdicts[name] for name in names)}/{len(names)}"


def sizes(results: Results) -> list[str]:
    return sorted(results["speed"], key=int)


def thousands(files: str) -> str:
    return f"{int(files) // 1000} k files"


def largest(results: Results) -> str:
    return sizes(results)[-1]


def where_and_when(results: Results) -> str:
    host, begun, ended = results["machine"], results["begun"], results["ended"]
    return (
        f"{begun['at']}; {host['cores']} cores ({host['processor']}), {host['memory_gib']} GiB,"
        f" {host['kernel']}, {host['filesystem']}, Python {host['python']},"
        f" SQLite {host['sqlite']}; load average {begun['load']} at the start,"
        f" {ended['load']} at the end"
    )
