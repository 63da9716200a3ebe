"""Runs a scenario's commands on the logging disk, and marks in the log what was promised when."""

import dataclasses
import json
import os
import pickle
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from tests.support.agents import COMMAND, Agents

READY = "ready"
_COMMANDS, _EVENTS = "commands.json", "events.pickle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a recording, and how the plan stood when it had returned."""

    words: tuple[str, ...]
    code: int
    plan: str
    state: str
    step: int
    groups: Mapping[str, Mapping[str, Any]]
    variants: tuple[str, str]
    """What the plan's steps were before it, and after."""

    @property
    def kind(self) -> str:
        if self.words[0] != "plan":
            return self.words[0]
        return self.words[2] if self.words[1] == "checkpoint" else self.words[1]

    @property
    def label(self) -> str | None:
        return self.words[self.words.index("--label") + 1] if "--label" in self.words else None

    @staticmethod
    def loaded(data: Mapping[str, Any]) -> "Command":
        return Command(
            **{**data, "words": tuple(data["words"]), "variants": tuple(data["variants"])}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A command of ours, or something that the user did without it; the user's things as they were
    before and after, if the scenario looks at them."""

    words: tuple[str, ...]
    is_ours: bool
    before: Any
    after: Any
    data: Mapping[str, Any]
    """What a command answered."""
    synced: tuple[str, ...] = ()
    """What the user has seen to being on the disk."""
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])
    """Those that it made."""


class Place(Protocol):
    """What of a scenario is needed here."""

    @property
    def cwd(self) -> Path: ...
    @property
    def environ(self) -> dict[str, str]: ...
    def open_gate(self) -> None: ...
    def look(self) -> Any: ...


class Recorder:
    """Calling it runs the installed command. `starting` is what is done to it before it starts."""

    def __init__(
        self,
        place: Place,
        mark: Callable[[str], None],
        variant: str,
        extra: Mapping[str, str],
        starting: Callable[[], None] | None = None,
    ) -> None:
        self._place = place
        self._mark = mark
        self._variant = variant
        self._environ = {**place.environ, **extra}
        self._starting = starting
        self._agents = Agents(Path(place.environ["HOME"]), place.cwd, place.environ)
        self.commands: list[Command] = []
        self.events: list[Event] = []

    def __call__(self, *words: str, code: int = 0, turns_to: str | None = None) -> Event:
        number, looked = len(self.commands), self._place.look()
        known = self.commands[-1].groups if self.commands else {}
        self._mark(f"start {number}")
        process = subprocess.Popen(
            [COMMAND, "--verbose", "--format", "json", *words],
            cwd=self._place.cwd,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=self._starting,
        )
        assert process.stdout and process.stderr
        lines: list[str] = []
        follower = threading.Thread(target=self._follow, args=(process.stderr, number, lines))
        follower.start()
        out = process.stdout.read()
        follower.join()
        assert process.wait() == code, f"{words}: {process.returncode}\n{out}\n{''.join(lines)}"
        self._mark(f"end {number}")
        before, self._variant = self._variant, turns_to or self._variant
        self.commands.append(self._standing(words, code, (before, self._variant)))
        event = Event(
            words=words,
            is_ours=True,
            before=looked,
            after=self._place.look(),
            data=json.loads(out)["data"],
            groups={g: row for g, row in self.commands[-1].groups.items() if g not in known},
        )
        self.events.append(event)
        return event

    def act(self, script: str, *synced: str) -> Event:
        """The user at work in the current folder, who syncs these and their folders, no more."""
        looked, top = self._place.look(), self._place.cwd
        self._mark(f"act {len(self.events)}")
        subprocess.run(["/bin/sh", "-ec", script], cwd=top, env=self._place.environ, check=True)
        for place in dict.fromkeys(p for name in synced for p in _upwards(top, name)):
            _sync(place)
        self._mark(f"acted {len(self.events)}")
        event = Event(
            words=(script,),
            is_ours=False,
            before=looked,
            after=self._place.look(),
            data={},
            synced=synced,
        )
        self.events.append(event)
        return event

    def _follow(self, stream: IO[str], number: int, lines: list[str]) -> None:
        """A line that somebody has read is a promise as much as an end is."""
        for line in stream:
            lines.append(line)
            self._mark(f"line {number} {line.strip()}")

    def _standing(self, words: tuple[str, ...], code: int, variants: tuple[str, str]) -> Command:
        plan = self._ask("plan", "list")["plans"][0]["plan_id"]
        status = self._ask("plan", "status", plan)
        listed = self._ask("plan", "checkpoint", "list", plan)["checkpoints"]
        return Command(
            words=words,
            code=code,
            plan=plan,
            state=status["state"],
            step=status["last_completed_step"],
            groups={row["group_id"]: row for row in listed},
            variants=variants,
        )

    def _ask(self, *words: str) -> dict[str, Any]:
        """Nobody is told, so this may be the quick way."""
        return self._agents.fork(*words).answer().ok().data

    # --- what scenarios need to know --------------------------------------------------------------

    def group(self, label: str) -> str:
        groups = self.commands[-1].groups
        return next(group for group, row in groups.items() if row["label"] == label)

    def decision(self, step: int) -> str:
        rows = self.commands[-1].groups.values()
        of_step = [row for row in rows if row["step_index"] == step and row["decision_id"]]
        return of_step[-1]["decision_id"]

    def open_gate(self) -> None:
        """Not synced, which would sync others' work too; whoever judges opens it once more."""
        self._place.open_gate()

    def save(self, folder: Path) -> None:
        told = [dataclasses.asdict(command) for command in self.commands]
        (folder / _COMMANDS).write_text(json.dumps(told))
        (folder / _EVENTS).write_bytes(pickle.dumps(self.events))


def load(folder: Path) -> tuple[list[Command], list[Event]]:
    told = json.loads((folder / _COMMANDS).read_text())
    events = pickle.loads((folder / _EVENTS).read_bytes())  # of our own making
    return [Command.loaded(data) for data in told], events


def _upwards(top: Path, name: str) -> Iterator[Path]:
    """What has this name, if it is there, and every folder above it up to `top`."""
    for place in (top / name, *(top / name).parents):
        if place.exists():
            yield place
        if place == top:
            return


def _sync(place: Path) -> None:
    fd = os.open(place, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
