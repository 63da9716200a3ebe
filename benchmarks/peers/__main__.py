"""Runs the comparison and writes what it found, and the pages made from it.

python -m benchmarks.peers                       what `make compare` does
python -m benchmarks.peers --files 100000        one large tree; results only with --keep FILE
"""

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.peers import fidelity, opencode, report, speed
from benchmarks.peers.machine import machine, moment
from benchmarks.peers.places import Place
from benchmarks.peers.roster import roster
from benchmarks.peers.session import Peer

FORMAT = 1
DEFAULT_FILES = [1000, 10000]


def main() -> None:
    # Many gigabytes may lie in the folder: it goes however this ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = _arguments()
    peers = roster()
    if arguments.tools:
        peers = [peer for peer in peers if peer.key in arguments.tools]
    with tempfile.TemporaryDirectory(prefix="compare-", dir=arguments.folder) as name:
        _keep(arguments, _found(arguments, peers, Path(name)))
        print("removing the trees", file=sys.stderr)


def _keep(arguments: argparse.Namespace, found: dict[str, object]) -> None:
    kept = Path(arguments.keep or report.RESULTS)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    if kept == report.RESULTS:
        report.write()
    print(report.page(found), flush=True)


def _found(arguments: argparse.Namespace, peers: list[Peer], folder: Path) -> dict[str, object]:
    begun = moment()
    times: dict[str, object] = {}
    if not arguments.skip_speed:
        for files in arguments.files:
            _say(f"speed, {files} files")
            plan = speed.Plan(
                files=files,
                changed=(1, 1000),
                rounds=arguments.rounds,
                seconds=arguments.seconds,
                checkpoints=arguments.checkpoints if files == arguments.files[0] else 0,
            )
            race = speed.Race(peers, folder / f"speed-{files}", plan)
            race.run()
            times[str(files)] = race.figures
    scores: dict[str, dict[str, str]] = {}
    if not arguments.skip_fidelity:
        _say("fidelity")
        scores = fidelity.score(peers, folder, arguments.workers)
    return {
        "format": FORMAT,
        "command": " ".join(["make compare", *_own_words()]),
        "begun": begun,
        "ended": moment(),
        "machine": machine(folder),
        "note": arguments.note,
        "tools": [_described(peer, folder) for peer in peers],
        "groups": {name: [case.name for case in group] for name, group in fidelity.GROUPS.items()},
        "speed": times,
        "fidelity": scores,
    }


def _described(peer: Peer, folder: Path) -> dict[str, object]:
    told = {key: getattr(peer, key) for key in ("key", "name", "how", "version", "ours", "missing")}
    if peer.key == "opencode":
        place = Place(folder / "opencode-itself")
        place.run("/bin/sh", "-e", "-c", fidelity.BASE + "echo new > new; echo more >> src/app.py")
        told["how"] += f" ({opencode.agrees(place)})"
    return told


def _own_words() -> list[str]:
    return [f"ARGS='{' '.join(sys.argv[1:])}'"] if sys.argv[1:] else []


def _say(text: str) -> None:
    print(f"# {text}, load {moment()['load']}", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=DEFAULT_FILES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="for one tool and one figure")
    parser.add_argument("--checkpoints", type=int, default=50, help="for the space they take")
    parser.add_argument("--tools", nargs="+", default=[], help="only these, by their keys")
    parser.add_argument("--workers", type=int, default=2, help="fidelity cases at a time")
    parser.add_argument("--skip-speed", action="store_true")
    parser.add_argument("--skip-fidelity", action="store_true")
    parser.add_argument("--folder", default="/var/tmp", help="where to make the trees: a disk")
    parser.add_argument("--keep", default="", help="another file for the results; no pages then")
    parser.add_argument("--note", default="", help="what readers of the figures should know")
    return parser.parse_args()


if __name__ == "__main__":
    main()
