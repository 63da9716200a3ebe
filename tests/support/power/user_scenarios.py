"""Scenarios with a user at work between our commands: in the tree that the agent works in, and in
a project whose apply is taken back and brought again."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.in_place_shots import Shot, difference, repository_is, shot_of
from tests.support.power import model
from tests.support.power.model import State, Step
from tests.support.power.recorder import Event, Recorder
from tests.support.power.scenarios import FIRST, SCENARIOS, Scenario
from tests.support.projects import Project
from tests.support.trees import tree_of

_LATER = "sleep 0.12"
_GIT = (".git/refs/heads", ".git/index", ".git/HEAD")
_FEW, _MANY = 5, 60


class WithUser(Scenario):
    """What this user commits is on the disk then; git leaves that to the file system otherwise."""

    def make(self) -> None:
        super().make()
        with (self.home / ".gitconfig").open("a") as file:
            file.write("[core]\n\tfsync = all\n")


class InPlace(WithUser):
    """A user's own checkout: an agent, edits and commits of the user's, and all ways back."""

    name = "in-place"
    resources = ("code",)

    def steps(self, variant: str) -> Sequence[Step]:
        return []

    @property
    def environ(self) -> dict[str, str]:
        return {**super().environ, "CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN": "1000"}

    def look(self) -> Shot:
        return shot_of(Project(self.places["code"], self.environ))

    def act(self, run: Recorder) -> None:
        begin = self.look()
        one = self._agent(run, f"{_files('one', _FEW)}; echo 1 >> log.txt; rm src/m3.py")
        note = "echo mine > notes.txt; echo 2 >> solo.txt; git add -A; git commit -qm mine"
        mine = run.act(note, "notes.txt", "solo.txt", *_GIT)
        two = self._agent(
            run,
            f"{_files('two', _MANY)}; echo two >> src/m1.py; rm -r one; git rm -q solo.txt;"
            " git switch -qc side; git commit -qam two; echo 2 >> log.txt; chmod 755 src/m2.py;"
            " ln -s m4.py src/link",
        )
        self._back(run, "undo", "--yes", to=mine.after)
        self._back(run, "redo", "--yes", to=two.after)
        run.act("echo edited >> src/m5.py; echo kept > later.txt", "src/m5.py", "later.txt")
        kept = self._back(run, "undo", "--keep", to=mine.after, kept=(b"src/m5.py", b"later.txt"))
        three = self._agent(run, "echo 3 >> log.txt; echo three > later.txt; git add log.txt")
        self._back(run, "undo", "--yes", to=kept.after)
        more = "git switch -qc topic; echo more > more.txt; git add -A; git commit -qm more"
        run.act(more, "more.txt", "later.txt", *_GIT, ".git/refs/heads/topic")
        self._to(run, one, one.after)
        run.act("echo again > solo.txt", "solo.txt")
        self._to(run, three, three.after)
        self._to(run, one, begin, reason="decision")
        self._back(run, "redo", "--yes", to=None)
        done = run("plan", "apply", "--yes", "latest")
        assert done.before == done.after

    def _agent(self, run: Recorder, script: str) -> Event:
        """The same script, without us, in a copy of the tree says what it comes to."""
        script = f"{script}; {_LATER}"
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch, "copy")
            shutil.copytree(self.places["code"], copy, symlinks=True)
            argv = ["/bin/sh", "-ec", script]
            subprocess.run(argv, cwd=copy, env=self.environ, check=True, capture_output=True)
            wanted = tree_of(copy)
        event = run("run", "--in-place", "--", "/bin/sh", "-ec", script)
        assert event.after.tree == wanted, difference(event.after.tree, wanted)
        return event

    def _back(
        self, run: Recorder, *words: str, to: Shot | None, kept: tuple[bytes, ...] = ()
    ) -> Event:
        event = run(*words)
        if to is not None:
            tree = {**to.tree, **{path: event.before.tree[path] for path in kept}}
            assert event.after.tree == tree, difference(event.after.tree, tree)
            repository_is(to, event.before, event.after, event.data["left"], pending=False)
        return event

    def _to(self, run: Recorder, made_by: Event, shot: Shot, reason: str = "") -> None:
        """To the last group that a command has made, or to the first with a reason."""
        rows = made_by.groups.items()
        group = next((g for g, row in rows if row["reason"] == reason), [*made_by.groups][-1])
        self._back(run, "plan", "rollback", "--yes", "latest", group, to=shot)


def _files(folder: str, count: int) -> str:
    return f"mkdir -p {folder}; for n in $(seq {count}); do echo {folder} $n > {folder}/$n; done"


class UndoApply(WithUser):
    """Repository, folder and database applied, taken back, brought again, and taken back, with
    edits of the user's in between that are in nobody's way."""

    name = "undo-apply"
    resources = ("code", "assets", "db")

    def steps(self, variant: str) -> Sequence[Step]:
        return [
            model.line("code", 1),
            model.many("code", 2, remove="solo.txt"),
            model.many("assets", 3, remove="gone.txt"),
            model.insert(4),
            model.write("code", "deep/er/written.txt", "w\n" * 900),
        ]

    def look(self) -> State:
        return {name: model.read(name, place) for name, place in self.places.items()}

    def act(self, run: Recorder) -> None:
        run("plan", "use", self.file)
        run("plan", "execute", "latest")
        run("plan", "apply", "--yes", "latest")
        self._is(run, after=True)
        run.act("echo mine > mine.txt; echo 1 >> src/m3.py", "mine.txt", "src/m3.py")
        run("undo", "--yes")
        self._is(run, after=False)
        run("redo", "--yes")
        self._is(run, after=True)
        run.act(
            "echo 2 >> mine.txt; git add mine.txt; git commit -qm mine",
            "mine.txt",
            *_GIT,
        )
        run("undo", "--yes")
        self._is(run, after=False)

    def edited(self, edits: int) -> dict[str, bytes]:
        """What the user has made of files of the repository by so many acts."""
        begun = self.begin()["code"]["src/m3.py"]
        return (
            {},
            {"mine.txt": b"mine\n", "src/m3.py": begun + b"1\n"},
            {"mine.txt": b"mine\n2\n", "src/m3.py": begun + b"1\n"},
        )[edits]

    def side(self, *, after: bool, edits: int) -> State:
        state = self.state(len(self.steps(FIRST)) if after else 0, FIRST)
        return {**state, "code": {**state["code"], **self.edited(edits)}}

    def _is(self, run: Recorder, *, after: bool) -> None:
        edits = sum(not event.is_ours for event in run.events)
        wrong = model.differences(run.events[-1].after, self.side(after=after, edits=edits))
        assert not wrong, wrong


ALL: dict[str, type[Scenario]] = {**SCENARIOS, **{kind.name: kind for kind in (InPlace, UndoApply)}}
