"""What is done on the disk while it is recorded: plans over different resources, told by marks."""

import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.support.agents import clean_environment
from tests.support.coding_agent import AGENT
from tests.support.power import model
from tests.support.power.model import State, Step
from tests.support.power.recorder import Recorder

FIRST = "as planned"


class Scenario(ABC):
    """One plan, and what people do with it. `variant` names what a correction or the like has
    made of its steps; `begin`, `steps` and `variants` together say every byte at every moment."""

    name: ClassVar[str]
    resources: ClassVar[tuple[str, ...]]
    apply_words: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[dict[str, Any]] = {"rollback_policy": {"max_checkpoints": 500}}
    few_are_kept: ClassVar[bool] = False

    def __init__(self, top: Path) -> None:
        self.top = top
        self.home = top / "home"
        self.work = top / "work"
        self.gate = top / "work/beside/go"
        self.places = {
            name: self.work / ("app.db" if name == "db" else name) for name in self.resources
        }

    @property
    def cwd(self) -> Path:
        """`latest` is the plan of this place."""
        return self.places[self.resources[0]]

    @property
    def file(self) -> str:
        return str(self.work / "action.yaml")

    @abstractmethod
    def steps(self, variant: str) -> Sequence[Step]: ...

    @abstractmethod
    def act(self, run: Recorder) -> None:
        """The commands; the last one is the end of the plan."""

    def state(self, done: int, variant: str) -> State:
        """What the sandboxes hold after so many steps."""
        return model.after(self.begin(), self.steps(variant)[:done])

    def begin(self) -> State:
        return model.begin(self.resources)

    @property
    def environ(self) -> dict[str, str]:
        return {**clean_environment(self.home), "TMPDIR": str(self.top / "tmp")}

    def make(self) -> None:
        for folder in (self.home, self.top / "tmp", self.gate.parent):
            folder.mkdir(parents=True)
        identity = "[user]\n\tname = Uma\n\temail = uma@example.com\n[gc]\n\tauto = 0\n"
        (self.home / ".gitconfig").write_text(identity)
        model.make(self.places, self.begin())
        if "code" in self.places:
            for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "begin")):
                argv = ["git", "-C", str(self.places["code"]), *words]
                subprocess.run(argv, env=self.environ, check=True, capture_output=True)
        Path(self.file).write_text(json.dumps(self.action()))

    def action(self) -> dict[str, Any]:
        named = {
            name: {"type": model.TYPES[name], "path": str(place)}
            for name, place in self.places.items()
        }
        return {
            **{"name": self.name, "description": "Change things", "resources": named, **self.keys},
            "confinement": {"write": [str(self.gate.parent)]},
            "steps": [step.definition for step in self.steps(FIRST)],
        }

    def open_gate(self) -> None:
        self.gate.touch()

    def look(self) -> Any:
        """The user's own things, where they change in between; nobody is asked elsewhere."""
        return None


class Three(Scenario):
    """Repository, folder and database: steps that fail, a rollback, a correction, an apply."""

    name = "three"
    resources = ("code", "assets", "db")
    corrected = 7

    def steps(self, variant: str) -> Sequence[Step]:
        content = "first\n" if variant == FIRST else "second\n"
        return [
            model.line("code", 1),
            model.line("assets", 2),
            model.insert(3),
            model.many("code", 4),
            model.line("assets", 5, unless=self.gate),
            model.many("assets", 6, remove="gone.txt"),
            model.line("code", 7, settle=False),
            model.write("code", "corrected.txt", content),
            model.write("code", "deep/er/written.txt", "w\n" * 900),
            model.insert(9),
            model.line("code", 10),
            model.many("code", 11, settle=False),
            model.line("assets", 12),
        ]

    def act(self, run: Recorder) -> None:
        run("plan", "use", self.file)
        run("plan", "execute", "latest", code=1)
        run("plan", "checkpoint", "create", "--label", "by hand", "latest")
        run.open_gate()
        run("plan", "resume", "latest")
        run("plan", "rollback", "--yes", "latest", run.group("decision 4: many 4"))
        run("plan", "checkpoint", "create", "--label", "gone back", "latest")
        run("plan", "execute", "latest")
        step = {"resource": "code", "path": "corrected.txt", "content": "second\n"}
        again = self.work / "step.yaml"
        again.write_text(json.dumps({"name": "write again", "tool": "file.write", "with": step}))
        advice = ("--mode", "revert", "--guidance", "second", "--step-file", str(again), "--yes")
        run("plan", "correct", *advice, run.decision(self.corrected), turns_to="corrected")
        run("plan", "checkpoint", "create", "--label", "at the end", "latest")
        run("plan", "apply", "--yes", "latest")


class Children(Scenario):
    """Children at once, merged into their parent's sandboxes, and a new branch in the end."""

    name = "children"
    resources = ("code", "assets")
    apply_words = ("--branch", "result")

    def steps(self, variant: str) -> Sequence[Step]:
        one = [model.write("code", "one.txt", "1\n"), model.many("assets", 1)]
        two = [model.write("code", "deep/two.txt", "2\n" * 500), model.line("code", 2)]
        three = [model.write("assets", "three.txt", "3\n"), model.write("code", "c3.txt", "3\n")]
        return [
            model.line("code", 0),
            model.spawn("both", {"one": one, "two": two}),
            model.line("assets", 4, unless=self.gate),
            model.spawn("third", {"three": three}),
            model.line("code", 5),
        ]

    def act(self, run: Recorder) -> None:
        run("plan", "use", self.file)
        run("plan", "execute", "latest", code=1)
        run.open_gate()
        run("plan", "resume", "latest")
        run("plan", "rollback", "--yes", "latest", run.group("decision 2: both"))
        run("plan", "execute", "latest")
        run("plan", "apply", "--yes", *self.apply_words, "latest")


class Folder(Scenario):
    """A folder without git: few checkpoints are kept, single files are brought back."""

    name = "folder"
    resources = ("assets",)
    keys: ClassVar[dict[str, Any]] = {"rollback_policy": {"max_checkpoints": 6}}
    few_are_kept = True

    def steps(self, variant: str) -> Sequence[Step]:
        return [
            model.write("assets", "solo.txt", "late\n"),
            *(model.line("assets", number) for number in range(1, 4)),
            model.many("assets", 4, remove="gone.txt"),
            model.line("assets", 5, unless=self.gate),
            *(model.line("assets", number, settle=False) for number in range(6, 9)),
            model.many("assets", 9),
        ]

    def state(self, done: int, variant: str) -> State:
        """One file is brought back once all is done, which changes no step."""
        state = super().state(done, variant)
        if variant != FIRST and done == len(self.steps(variant)):
            state["assets"]["solo.txt"] = b"0\n"
        return state

    def act(self, run: Recorder) -> None:
        run("plan", "use", self.file)
        run("plan", "execute", "latest", code=1)
        run.open_gate()
        run("plan", "resume", "latest")
        run("plan", "checkpoint", "create", "--label", "by hand", "latest")
        words = ("--yes", "--only", "solo.txt", "latest", run.group("start"))
        run("plan", "rollback", *words, turns_to="solo.txt brought back")
        run("plan", "checkpoint", "prune", "--yes", "latest")
        run("plan", "apply", "--yes", "latest")


class Agent(Scenario):
    """A coding agent whose hooks make the steps; its work is left uncommitted."""

    name = "agent"
    resources = ("code",)
    apply_words = ("--no-commit",)
    files = ("one.txt", "two.txt", "three.txt")

    def steps(self, variant: str) -> Sequence[Step]:
        return [model.write("code", name, name * 300) for name in self.files]

    def action(self) -> dict[str, Any]:
        calls = [{"name": name, "content": name * 300, "sleep": 0.12} for name in self.files]
        script = self.work / "agent.py"
        # What it is told after going back is not part of what it writes: the model knows no words.
        script.write_text(AGENT.replace(" + advice", ""))
        command = [sys.executable, str(script), json.dumps(calls)]
        action = super().action()
        del action["steps"]
        return {**action, "actor": {"type": "command", "command": command}}

    def act(self, run: Recorder) -> None:
        run("plan", "use", self.file)
        run("plan", "execute", "latest")
        run("plan", "rollback", "--yes", "latest", run.group("decision 2: Write two.txt"))
        run("plan", "resume", "latest")
        run("plan", "apply", "--yes", *self.apply_words, "latest")


class Ended(Scenario):
    """A plan that is given up: cancelled, and its sandboxes removed. The project never changes."""

    name = "ended"
    resources = ("code", "assets", "db")

    def steps(self, variant: str) -> Sequence[Step]:
        return [
            model.many("code", 1),
            model.line("assets", 2),
            model.insert(3),
            model.line("code", 4, unless=self.gate),
            model.line("assets", 5),
        ]

    def act(self, run: Recorder) -> None:
        run("plan", "use", self.file)
        run("plan", "execute", "latest", code=1)
        run("plan", "cancel", "latest")
        run("plan", "discard", "--yes", "latest")


class Layers(Scenario):
    """An ignored folder, changed by steps, by a child and by going back, and brought in the end."""

    name = "layers"
    resources = ("code",)
    apply_words = ("--with-ignored", model.IGNORED)

    def begin(self) -> State:
        state = super().begin()
        state["code"][".gitignore"] = f"{model.IGNORED}/\n".encode()
        for number in range(12):
            state["code"][f"{model.IGNORED}/p{number}/index.js"] = b"theirs\n" * 300
        return state

    def steps(self, variant: str) -> Sequence[Step]:
        return [
            model.packages(0),
            model.line("code", 1),
            model.spawn("child", {"one": [model.packages(3)]}),
            model.line("code", 4, unless=self.gate),
            model.packages(6),
            model.write("code", f"{model.IGNORED}/p9/written.js", "w\n" * 900),
        ]

    def act(self, run: Recorder) -> None:
        run("plan", "use", self.file)
        run("plan", "execute", "latest", code=1)
        run.open_gate()
        run("plan", "resume", "latest")
        run("plan", "rollback", "--yes", "latest", run.group("decision 2: line 1"))
        run("plan", "execute", "latest")
        run("plan", "apply", "--yes", *self.apply_words, "latest")


SCENARIOS: dict[str, type[Scenario]] = {
    kind.name: kind for kind in (Three, Children, Folder, Agent, Ended, Layers)
}
