"""Pull the plug: record scenarios on a logging disk, cut the power at many places, judge each.

    python -m tests.support.power --fs ext4 --seed 1 --points 150
    python -m tests.support.power --fs ext4 --seed 1 --scenario three --again 884 lost

Exit: 0 nothing found, 1 findings, 2 it cannot be done here. With `--control` it is the other way
round: 0 says that the missing syncs were noticed.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.power.log import Mode
from tests.support.power.machine import FILE_SYSTEMS, Loop, free_loop, missing
from tests.support.power.recording import CONTROLS, Recording, opened, record
from tests.support.power.states import Cut, States, drawn
from tests.support.power.user_scenarios import ALL


def main(argv: list[str]) -> int:
    options = _asked().parse_args(argv)
    wrong = missing(options.fs)
    if wrong:
        say("the plug cannot be pulled here: " + "; ".join(wrong))
        return 2
    found = 0
    with free_loop() as loop:
        for name in options.scenario or ALL:
            found += _scenario(options, name, loop)
    if options.control:
        say("noticed" if found else f"{options.control}: NOT noticed")
        return int(not found)
    return int(found > 0)


def _asked() -> argparse.ArgumentParser:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--fs", choices=FILE_SYSTEMS, default="ext4")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--points", type=int, default=150, help="over all scenarios")
    asked.add_argument("--scenario", action="append", choices=ALL, help="may be repeated")
    asked.add_argument("--control", choices=CONTROLS, help="take syncs away: is it noticed?")
    asked.add_argument("--folder", type=Path, default=Path("build/power"))
    asked.add_argument("--keep", action="store_true", help="use the recordings that are there")
    asked.add_argument("--again", nargs="+", metavar="POINT MODE [twice]", help="one state only")
    asked.add_argument("--minutes", type=float, default=600, help="at most, for each scenario")
    return asked


def _scenario(options: argparse.Namespace, name: str, loop: Loop) -> int:
    recording = _recorded(options, name, loop)
    states = States(recording, loop, options.seed)
    if options.again:
        point, mode, *twice = options.again
        cuts = [Cut(int(point), Mode(mode), bool(twice))]
    else:
        share = options.points // len(options.scenario or ALL)
        cuts = drawn(recording, share, options.seed)
    begun, results = time.monotonic(), list[dict[str, Any]]()
    for cut in cuts:
        if time.monotonic() - begun > options.minutes * 60:
            say(f"{name}: time is over after {len(results)} of {len(cuts)} states")
            break
        results.append(result := states.judge(cut))
        _tell(name, result, whole=bool(options.again))
        if not len(results) % 50:
            say(f"{name}: {len(results)} of {len(cuts)} states")
    _sum_up(options, name, results, time.monotonic() - begun)
    (recording.folder / f"results-{options.seed}.json").write_text(json.dumps(results, indent=1))
    # A sync that is missing in the record loses what was told; nothing else counts as noticed.
    lost = ("lost",) if options.control else ()
    return sum(any(not lost or f["kind"] in lost for f in r["findings"]) for r in results)


def _recorded(options: argparse.Namespace, name: str, loop: Loop) -> Recording:
    control = f"-{options.control}" if options.control else ""
    folder = options.folder.resolve() / f"{options.fs}-{options.seed}{control}" / name
    if (options.keep or options.again) and (folder / "about.json").exists():
        return opened(folder)
    begun = time.monotonic()
    recording = record(folder, name, options.fs, loop, options.control)
    log, took = recording.log, time.monotonic() - begun
    say(f"{name}: {len(log)} entries, {len(log.flushes)} flushes recorded in {took:.0f} s")
    return recording


def _tell(name: str, result: dict[str, Any], *, whole: bool) -> None:
    for finding in result["findings"]:
        text = finding["text"] if whole else _short(finding)
        say(f"{name} {result['cut']} ({result['where']}) {finding['kind']}: {text}")
    if whole:
        say("\n".join(result["typed"]))


def _short(finding: dict[str, str]) -> str:
    """Of what failed here, the end says what it was."""
    text = " ".join(finding["text"].split())
    return text[-300:] if finding["kind"] == "harness" else text[:300]


def _sum_up(
    options: argparse.Namespace, name: str, results: list[dict[str, Any]], seconds: float
) -> None:
    bad = [result for result in results if result["findings"]]
    kinds = Counter(kind for r in bad for kind in {f["kind"] for f in r["findings"]})
    told = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
    say(
        f"{options.fs} seed {options.seed} {name}: {len(results)} states in {seconds:.0f} s, "
        f"{len(bad)} with findings{f' ({told})' if told else ''}"
    )


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
