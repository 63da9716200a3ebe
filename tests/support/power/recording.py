"""Records a scenario, and keeps it in a folder, so that each of its states can be had again."""

import gc
import importlib
import json
import os
import pkgutil
import platform
from dataclasses import dataclass
from pathlib import Path

from tests.support.power import controls
from tests.support.power.log import Log
from tests.support.power.logging_disk import LoggingDisk
from tests.support.power.machine import MOUNTED, SIZE, Loop, mounted
from tests.support.power.recorder import READY, Command, Event, Recorder, load
from tests.support.power.scenarios import FIRST, Scenario
from tests.support.power.user_scenarios import ALL

import cleveragents

CONTROLS = ("no-syncs", "one-sync-less")


@dataclass(frozen=True, slots=True)
class Recording:
    """One scenario on one file system: the log of the disk, and what its commands came to."""

    folder: Path
    kind: str
    scenario: Scenario
    log: Log
    commands: list[Command]
    events: list[Event]

    @property
    def ready(self) -> int:
        """From here on the scenario is at work."""
        return next(i for i, text in self.log.marks() if text == READY)

    @property
    def borders(self) -> list[int]:
        """Where commands, and acts of the user, start and end."""
        marks = self.log.marks(self.ready)
        return [i for i, text in marks if text.startswith(("start", "end", "act"))]


def load_everything() -> None:
    """Commands are forks of this process: they need not import it, nor look at it for garbage."""
    for module in pkgutil.walk_packages(cleveragents.__path__, "cleveragents."):
        if not module.name.endswith("__main__"):  # which is the command itself
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def record(folder: Path, name: str, kind: str, loop: Loop, control: str | None) -> Recording:
    load_everything()
    folder.mkdir(parents=True, exist_ok=True)
    top = folder / MOUNTED
    scenario = ALL[name](top)
    extra = controls.one_sync_less() if control == "one-sync-less" else {}
    starting = controls.no_syncs(platform.machine()) if control == "no-syncs" else None
    with LoggingDisk(folder / "image", folder / "log", SIZE) as disk, loop.over(disk.place):
        loop.make(kind)
        with mounted(loop, top, kind):
            scenario.make()
            os.sync()
            disk.mark(READY)
            recorder = Recorder(scenario, disk.mark, FIRST, extra, starting)
            scenario.act(recorder)
    recorder.save(folder)
    about = {"scenario": name, "kind": kind, "control": control, "device": loop.device}
    (folder / "about.json").write_text(json.dumps(about))
    return opened(folder)


def opened(folder: Path) -> Recording:
    load_everything()
    about = json.loads((folder / "about.json").read_text())
    scenario = ALL[about["scenario"]](folder / MOUNTED)
    log, (commands, events) = Log.read(folder / "log"), load(folder)
    return Recording(folder, about["kind"], scenario, log, commands, events)
