"""Owns the page of the comparison and the short table of the README, made from the results."""

from collections.abc import Sequence

from benchmarks.peers import figures
from benchmarks.peers.figures import COMMAND, MEASURES, OURS, Results
from benchmarks.peers.words import FIDELITY, INTRODUCTION, OUTRO, SPACE, SPEED


def page(results: Results) -> str:
    note = f" {results['note']}" if results.get("note") else ""
    parts = [INTRODUCTION, f"Measured {figures.where_and_when(results)}.{note}\n\n"]
    if results["speed"]:
        parts += ["![Time and fidelity of each tool](../images/comparison.svg)\n\n"]
        parts += [SPEED.format(rounds=_rounds(results))]
        parts += [_speed(results, files) for files in figures.sizes(results)]
        parts += [_slower(results), _space(results)]
    if results["fidelity"]:
        total = sum(len(names) for names in results["groups"].values())
        parts += [FIDELITY.format(cases=total), _scores(results), _cases(results)]
    parts += [_driven(results), OUTRO]
    return "".join(parts)


def readme(results: Results) -> str:
    """Short, for people who have a minute."""
    shown = [OURS, COMMAND, "gemini", "opencode", "shadow", "restic", "borg"]
    tools = [tool for tool in results["tools"] if tool["key"] in shown]
    head = ["", *(tool["name"] for tool in tools)]
    files = figures.largest(results)
    rows = [["exactly restored, cases", *(figures.passed(results, t["key"]) for t in tools)]]
    for measure in ("nothing", "checkpoint 1", "checkpoint 1000", "restore 1", "restore 1000"):
        taken = [figures.milliseconds(results, files, tool["key"], measure) for tool in tools]
        rows.append([MEASURES[measure], *(figures.duration(value) for value in taken)])
    count = _checkpoints(results)
    rows.append(
        [f"{count} checkpoints on disk", *(figures.space(results, t["key"]) for t in tools)]
    )
    day = results["begun"]["at"].split()[0]
    note = (
        f"`make compare`, {day}, {results['machine']['cores']} cores, load"
        f" {results['begun']['load']}; medians, tree of {figures.thousands(files)}"
        f" ({figures.thousands(figures.sizes(results)[0])} for the disk)."
        " Versions, how each was driven, and where ours is slower:"
        " [the whole comparison](docs/reference/comparison.md)."
    )
    return f"{_table(head, rows)}\n{note}"


def _speed(results: Results, files: str) -> str:
    head = ["", *MEASURES.values()]
    rows = [
        [_name(tool), *(_cell(results, files, tool, measure) for measure in MEASURES)]
        for tool in results["tools"]
    ]
    return f"### {figures.thousands(files)}\n\n{_table(head, rows)}\n"


def _cell(results: Results, files: str, tool: dict[str, str], measure: str) -> str:
    if tool["missing"]:
        return "not installed"
    value = figures.milliseconds(results, files, tool["key"], measure)
    if value is None:
        found = results["speed"][files].get(tool["key"], {}).get(measure, {})
        return found.get("failed", "–")
    own = figures.milliseconds(results, files, OURS, measure)
    if own is None or tool["key"] == OURS:
        return figures.duration(value)
    times = figures.ratio(value, own)
    return f"{figures.duration(value)} ({f'**{times}**' if value < own else times})"


def _slower(results: Results) -> str:
    """Once more in words, so that nobody has to look for it."""
    lines: list[str] = []
    for files in figures.sizes(results):
        for measure, title in MEASURES.items():
            own = figures.milliseconds(results, files, OURS, measure)
            named = [
                f"{tool['name']} ({figures.ratio(value, own)})"
                for tool in results["tools"]
                if (value := figures.milliseconds(results, files, tool["key"], measure)) is not None
                and own is not None
                and value < own
            ]
            if named:
                lines.append(f"- {figures.thousands(files)}, {title}: {', '.join(named)}\n")
    told = "".join(lines) or "Nowhere in this run.\n"
    return f"### Where CleverAgents in a plan was slower\n\n{told}\n"


def _space(results: Results) -> str:
    count = _checkpoints(results)
    if not count:
        return ""
    files = figures.thousands(figures.sizes(results)[0])
    rows = [[_name(tool), figures.space(results, tool["key"])] for tool in results["tools"]]
    text = SPACE.format(checkpoints=count, files=files)
    return text + _table(["", f"{count} checkpoints"], rows) + "\n"


def _scores(results: Results) -> str:
    groups = list(results["groups"])
    rows = [
        [
            _name(tool),
            f"**{figures.passed(results, tool['key'])}**",
            *(figures.passed(results, tool["key"], group) for group in groups),
        ]
        for tool in _judged(results)
    ]
    return _table(["", "all", *groups], rows) + "\n"


def _cases(results: Results) -> str:
    tools = [tool for tool in _judged(results) if tool["key"] in results["fidelity"]]
    rows: list[list[str]] = []
    for group, names in results["groups"].items():
        rows.append([f"**{group}**", *("" for _ in tools)])
        for name in names:
            verdicts = (results["fidelity"][tool["key"]][name] for tool in tools)
            rows.append([name, *("✗" if verdict else "✓" for verdict in verdicts)])
    names = ["CleverAgents" if tool["ours"] else tool["name"] for tool in tools]
    return f"### Case by case\n\n{_table(['', *names], rows, ':-:')}\n"


def _driven(results: Results) -> str:
    rows = [
        [
            _name(tool),
            tool["version"] or "–",
            f"not installed: {tool['missing']}" if tool["missing"] else tool["how"],
        ]
        for tool in results["tools"]
    ]
    return f"## How each was driven\n\n{_table(['', 'version', 'how'], rows, '---')}\n"


def _judged(results: Results) -> list[dict[str, str]]:
    return [tool for tool in results["tools"] if tool["key"] != OURS]


def _name(tool: dict[str, str]) -> str:
    return f"**{tool['name']}**" if tool["ours"] else tool["name"]


def _rounds(results: Results) -> int:
    every = (figure for by_tool in results["speed"].values() for figure in by_tool.values())
    return max(found.get("rounds", 0) for by_name in every for found in by_name.values())


def _checkpoints(results: Results) -> int:
    every = (figure for by_tool in results["speed"].values() for figure in by_tool.values())
    return max((by_name.get("space", {}).get("checkpoints", 0) for by_name in every), default=0)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str = "--:") -> str:
    marks = ["---", *(align for _ in head[1:])]
    lines = [_line(head), "|" + "|".join(marks) + "|", *(_line(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
