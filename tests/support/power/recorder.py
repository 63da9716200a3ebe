"""Runs a scenario's commands on the logging disk, and marks in the log what was promised when."""

import dataclasses
import json
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from tests.support.agents import COMMAND, Agents

READY = "ready"


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
        return self.words[2] if self.words[1] == "checkpoint" else self.words[1]

    @property
    def label(self) -> str | None:
        return self.words[self.words.index("--label") + 1] if "--label" in self.words else None

    @staticmethod
    def loaded(data: Mapping[str, Any]) -> "Command":
        return Command(
            **{**data, "words": tuple(data["words"]), "variants": tuple(data["variants"])}
        )


class Place(Protocol):
    """What of a scenario is needed here."""

    @property
    def cwd(self) -> Path: ...
    @property
    def environ(self) -> dict[str, str]: ...
    def open_gate(self) -> None: ...


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

    def __call__(self, *words: str, code: int = 0, turns_to: str | None = None) -> None:
        number = len(self.commands)
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

    def save(self, path: Path) -> None:
        path.write_text(json.dumps([dataclasses.asdict(command) for command in self.commands]))


def load(path: Path) -> list[Command]:
    return [Command.loaded(data) for data in json.loads(path.read_text())]
