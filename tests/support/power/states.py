"""Draws the places of cuts in a recording, makes each of them, and has it judged."""

import json
import os
import random
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.power.in_place_judge import IN_PLACE_RUN, InPlaceJudge
from tests.support.power.judge import Judge
from tests.support.power.log import Images, Log, Mode
from tests.support.power.logging_disk import LoggingDisk
from tests.support.power.machine import SIZE, Loop, another_boot, mounted, own_mounts
from tests.support.power.promises import Promises, told_until
from tests.support.power.recording import Recording
from tests.support.power.scenarios import Scenario
from tests.support.power.undo_judge import UndoJudge
from tests.support.power.user_scenarios import InPlace, UndoApply

# Of so many states one is cut a second time, while the first cut is being mended.
TWICE_IN = 5


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the power goes, and what becomes of that which was not flushed."""

    point: int
    mode: Mode
    twice: bool = False

    def __str__(self) -> str:
        return f"{self.point} {self.mode}{' twice' if self.twice else ''}"


def drawn(recording: Recording, points: int, seed: int) -> list[Cut]:
    """A third anywhere, a third at flushes, a third where commands start and end."""
    chance, log, first = random.Random(seed), recording.log, recording.ready + 1
    flushes = [at for at in log.flushes if at > first]
    borders = recording.borders
    chosen: set[int] = set()
    for number in range(points):
        place = (
            lambda: chance.randrange(first, len(log)),
            lambda: chance.choice(flushes) + chance.choice((-1, 0, 1, 2)),
            lambda: chance.choice(borders) + chance.choice((-3, -2, -1, 0, 1, 2, 3)),
        )[number % 3]
        chosen.add(min(len(log), max(first, place())))
    return [cut for point in sorted(chosen) for cut in _modes(log, point, chance)]


def _modes(log: Log, point: int, chance: random.Random) -> Iterator[Cut]:
    """Where nothing was unsure, all is one."""
    unsure = bool(log.window(point))
    modes = [Mode.LOST, Mode.HALF] if unsure else [Mode.LOST]
    if unsure and chance.random() < 0.2:
        modes.append(Mode.ALL)
    for mode in modes:
        yield Cut(point, mode, chance.randrange(TWICE_IN) == 0)


class States:
    """The states of one recording, judged one after the other on its loop device."""

    def __init__(self, recording: Recording, loop: Loop, seed: int) -> None:
        self.recording = recording
        self._loop = loop
        self._seed = seed
        self._folder = tempfile.TemporaryDirectory(prefix="power-")
        self._scratch = Path(self._folder.name)
        self._images = Images(recording.log, self._scratch, SIZE)

    def judge(self, cut: Cut) -> dict[str, Any]:
        recording, seed = self.recording, f"{self._seed}/{cut.point}/{cut.mode}"
        image = self._images.cut(cut.point, cut.mode, seed)
        promises = told_until(recording.log, recording.ready, cut.point, recording.commands)
        if cut.twice:
            image, promises = self._cut_again(image, promises, random.Random(f"{seed}/again"))
        with self._loop.over(image):
            result = self._apart(lambda: self._judge(promises, seed))
        return {"cut": str(cut), "where": promises.where, **result}

    def _judge(self, promises: Promises, seed: str) -> dict[str, Any]:
        scenario = self.recording.scenario
        with mounted(self._loop, scenario.top, self.recording.kind):
            judge = judge_of(self.recording, promises, seed)
            verdict = judge.judge()
        return {"findings": verdict.findings, "typed": verdict.typed}

    # --- a second cut -----------------------------------------------------------------------------

    def _cut_again(
        self, image: Path, promises: Promises, chance: random.Random
    ) -> tuple[Path, Promises]:
        """What is done to mend the first cut is recorded in turn, and cut off."""
        place, log = self._scratch / "again", self._scratch / "again.log"
        words = mending(promises, self.recording.scenario, chance)
        with LoggingDisk(place, log, SIZE, image) as disk, self._loop.over(place):
            told = self._apart(lambda: self._mend(disk, words))
        assert not told["findings"], told
        second = Log.read(log)
        first = next((at for at, _ in second.marks()), 0)
        point = chance.randrange(first, len(second)) + 1
        begin = image.rename(self._scratch / "begin")
        (self._scratch / "second").mkdir(exist_ok=True)
        images = Images(second, self._scratch / "second", SIZE, begin)
        for _, text in second.marks(0, point):
            kind, done = text.split()
            promises = promises.mended_by(kind, returned=done == "done")
        cut = images.cut(point, chance.choice(list(Mode)), f"{chance.random()}")
        return cut, promises

    def _mend(self, disk: LoggingDisk, commands: list[tuple[str, ...]]) -> dict[str, Any]:
        scenario = self.recording.scenario
        with mounted(self._loop, scenario.top, self.recording.kind):
            scenario.open_gate()
            agents = Judge.agents_of(scenario)
            plans = agents.fork("plan", "list").answer().data.get("plans", ())
            for kind, *words in commands if plans else ():
                plan = [plans[0]["plan_id"]] if words[0] == "plan" else []
                disk.mark(f"{kind} begun")
                code = agents.fork(*words, *plan).answer().code
                if code:
                    break
                disk.mark(f"{kind} done")
        return {}

    # --- apart ------------------------------------------------------------------------------------

    def _apart(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """In a process with mounts of its own and another boot; what fails there is told here."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self._be_apart(work, writing)
        os.close(writing)
        with os.fdopen(reading) as told:
            text = told.read()
        os.waitpid(child, 0)
        return json.loads(text)

    def _be_apart(self, work: Callable[[], dict[str, Any]], pipe: int) -> None:
        result: dict[str, Any] = {}
        try:
            own_mounts()
            another_boot(self._scratch)
            result = work()
        except BaseException:  # noqa: BLE001 - told to the parent
            result = {"findings": [{"kind": "harness", "text": traceback.format_exc()}]}
        finally:
            with os.fdopen(pipe, "w") as told:
                json.dump({"findings": [], "typed": [], **result}, told)
            os._exit(0)


def judge_of(recording: Recording, promises: Promises, seed: str) -> Judge:
    scenario, commands, events = recording.scenario, recording.commands, recording.events
    if isinstance(scenario, InPlace):
        return InPlaceJudge(scenario, commands, promises, seed, events)
    if isinstance(scenario, UndoApply):
        return UndoJudge(scenario, commands, promises, seed, events)
    return Judge(scenario, commands, promises, seed)


def mending(promises: Promises, scenario: Scenario, chance: random.Random) -> list[tuple[str, ...]]:
    """What people would type: kind, and the words; commands of `plan` get the plan's id."""
    doctor = [("doctor", "doctor", "--fix", "--yes")] if chance.random() < 0.4 else []
    if isinstance(scenario, UndoApply) and promises.applied:
        word = chance.choice(("undo", "redo"))
        return [*doctor, (word, word, "--yes")]
    if promises.applied or promises.applying:
        return [*doctor, ("apply", "plan", "apply", "--yes", *scenario.apply_words)]
    if isinstance(scenario, InPlace):
        way = chance.choice((("undo", "--yes"), ("redo", "--yes"), IN_PLACE_RUN))
        return [*doctor, (way[0], *way)]
    if promises.ending:
        word = "discard" if "cancel" in promises.over else "cancel"
        yes = ("--yes",) if word == "discard" else ()
        return [*doctor, (word, "plan", word, *yes)]
    word = chance.choice(("execute", "resume"))
    return [*doctor, (word, "plan", word)]
