"""Owns the measured times: every tool in turn, on a copy of the same tree, in the same minutes."""

import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.places import PeerError
from benchmarks.peers.session import Peer, Session
from benchmarks.peers.trees import Template

FIRST, NOTHING = "first", "nothing"
LEAST_ROUNDS = 2
Figure = dict[str, float | int | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`seconds` is how long one tool may take for one figure before it has fewer rounds."""

    files: int
    changed: tuple[int, ...]
    rounds: int
    seconds: float
    checkpoints: int


class Race:
    """One tool per session: one that fails has its reason instead of a figure."""

    def __init__(self, peers: list[Peer], folder: Path, plan: Plan) -> None:
        self._plan, self._template = plan, Template(folder / "template", plan.files)
        self._peers, self._folder = [peer for peer in peers if not peer.missing], folder
        self._sessions: dict[str, Session] = {}
        self.figures: dict[str, dict[str, Figure]] = {peer.key: {} for peer in self._peers}

    def run(self) -> None:
        try:
            self._run()
        finally:
            for session in self._sessions.values():
                session.close()

    def _run(self) -> None:
        self._first()
        if self._plan.checkpoints:
            # First, since later on a store may have room left by what was there before.
            self._space()
        self._measure(NOTHING, lambda session: session.snapshot(), _leave)
        for changed in self._plan.changed:
            self._checkpoints(changed)
        for changed in self._plan.changed:
            self._restores(changed)

    def _first(self) -> None:
        for peer in self._peers:
            place = self._template.copy(self._folder / peer.key)
            os.sync()
            start = time.perf_counter()
            try:
                session = peer.open(place)
                session.snapshot()
            except PeerError as error:
                self.figures[peer.key][FIRST] = {"failed": str(error)}
                continue
            taken = (time.perf_counter() - start) * 1000
            self._sessions[peer.key] = session
            self._keep(peer.key, FIRST, [taken])
        self._template.remove()
        # What was written a moment ago is looked at twice by everyone who is careful.
        time.sleep(1)
        for session in self._sessions.values():
            session.snapshot()

    def _checkpoints(self, changed: int) -> None:
        self._measure(
            f"checkpoint {changed}",
            lambda session: session.snapshot(),
            lambda session, stamp: self._template.change(session.tree, changed, stamp),
        )

    def _restores(self, changed: int) -> None:
        targets: dict[Path, tuple[str, list[bytes]]] = {}
        for session in self._sessions.values():
            there = self._template.contents(session.tree, changed)
            targets[session.tree] = (session.snapshot(), there)

        def restore(session: Session) -> None:
            session.restore(targets[session.tree][0])

        def change(session: Session, stamp: str) -> None:
            self._template.change(session.tree, changed, stamp)

        self._measure(f"restore {changed}", restore, change)
        for key, session in self._sessions.items():
            if self._template.contents(session.tree, changed) != targets[session.tree][1]:
                self.figures[key][f"restore {changed}"] = {"failed": "not as it was"}

    def _space(self) -> None:
        for key, session in self._sessions.items():
            before = session.stored()
            for number in range(self._plan.checkpoints):
                self._template.change(session.tree, 1, f"space {number}")
                session.snapshot()
            grown = session.stored() - before
            self.figures[key]["space"] = {"bytes": grown, "checkpoints": self._plan.checkpoints}
            print(f"  space {key}: {grown} bytes", file=sys.stderr, flush=True)

    def _measure(
        self,
        name: str,
        task: Callable[[Session], object],
        change: Callable[[Session, str], object],
    ) -> None:
        """In turn, so that a slow minute of the machine meets everyone."""
        times: dict[str, list[float]] = {key: [] for key in self._sessions}
        failed: dict[str, str] = {}
        for number in range(self._plan.rounds):
            for key, session in self._sessions.items():
                spent = sum(times[key]) / 1000
                enough = len(times[key]) >= LEAST_ROUNDS and spent > self._plan.seconds
                if key in failed or enough:
                    continue
                change(session, f"{name} {number}")
                # Nobody is to wait for what others have left to be written.
                os.sync()
                try:
                    times[key].append(_milliseconds(task, session))
                except PeerError as error:
                    failed[key] = str(error)
        for key, taken in times.items():
            if key in failed:
                self.figures[key][name] = {"failed": failed[key]}
            else:
                self._keep(key, name, taken)

    def _keep(self, key: str, name: str, taken: list[float]) -> None:
        self.figures[key][name] = {
            "median_ms": round(statistics.median(taken), 2),
            "least_ms": round(min(taken), 2),
            "rounds": len(taken),
        }
        median = statistics.median(taken)
        print(f"  {name} {key}: {median:.1f} ms", file=sys.stderr, flush=True)


def _leave(_session: Session, _stamp: str) -> None:
    """Nothing changes."""


def _milliseconds(task: Callable[[Session], object], session: Session) -> float:
    start = time.perf_counter()
    task(session)
    return (time.perf_counter() - start) * 1000
