"""A home, a project and the plans made on it: what most tests stand on."""

import json
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.agents import Agents, Answer, clean_environment
from tests.support.projects import USER, copy_project, make_project
from tests.support.trees import Tree, tree_of

Step = Mapping[str, Any]
CODE = {"code": {"type": "git-checkout", "path": "."}}


def shell(command: str, name: str = "work", **more: Any) -> Step:
    return {"name": name, "tool": "shell", "with": {"resource": "code", "command": command, **more}}


def write(path: str, content: str, name: str = "write") -> Step:
    arguments = {"resource": "code", "path": path, "content": content}
    return {"name": name, "tool": "file.write", "with": arguments}


def action(*steps: Step, **keys: Any) -> dict[str, Any]:
    """An action on the checkout `code`; `keys` add to it or replace what it says."""
    base = {"name": "demo", "description": "Change the project", "resources": CODE}
    return {**base, "steps": list(steps), **keys}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One checkpoint group as `plan checkpoint list` shows it."""

    group_id: str
    rows: tuple[Mapping[str, Any], ...]

    def __getattr__(self, name: str) -> Any:
        return self.rows[0][name]

    @property
    def head(self) -> str:
        return next(
            row["checkpoint_id"] for row in self.rows if row["checkpoint_type"] == "plan-state"
        )


class PlanHandle:
    """One plan, asked and told through the command in this process."""

    def __init__(self, agents: Agents, plan_id: str) -> None:
        self.agents = agents
        self.id = plan_id

    def __call__(self, *words: str) -> Answer:
        """`plan("status")` is `agents plan status <id>`; `{}` puts the id elsewhere."""
        if "{}" in words:
            return self.agents("plan", *(self.id if word == "{}" else word for word in words))
        return self.agents("plan", *words, self.id)

    def execute(self) -> Answer:
        return self("execute")

    def rollback(self, wanted: str) -> Answer:
        return self.agents("plan", "rollback", "--yes", self.id, wanted)

    @property
    def status(self) -> dict[str, Any]:
        return self("status").ok().data

    @property
    def sandbox(self) -> Path:
        return Path(self.status["sandboxes"][0]["path"])

    def tree(self) -> Tree:
        return tree_of(self.sandbox)

    @property
    def groups(self) -> list[Group]:
        return groups_of(self("checkpoint", "list").ok().data)

    def group(self, label: str) -> Group:
        return next(group for group in self.groups if group.label == label)

    @property
    def reasons(self) -> list[str]:
        return [group.reason for group in self.groups]


def groups_of(listing: Mapping[str, Any]) -> list[Group]:
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in listing["checkpoints"]:
        rows.setdefault(row["group_id"], []).append(row)
    return [Group(group_id=key, rows=tuple(value)) for key, value in rows.items()]


class World:
    """Everything below one folder; `template` saves making the project and the database again."""

    def __init__(self, top: Path, template: "World | None" = None) -> None:
        self.top = top
        self.home = top / "home"
        self.home.mkdir(parents=True)
        # The one place outside of everything that steps may write to: to be heard, and to wait.
        self.beside = top / "beside"
        self.beside.mkdir()
        name, email = USER
        identity = f"[user]\n\tname = {name}\n\temail = {email}\n"
        (self.home / ".gitconfig").write_text(identity)
        environ = clean_environment(self.home)
        place = top / "project"
        if template is None:
            self.project = make_project(place, environ)
        else:
            self.project = copy_project(template.project, place, environ)
            copy_database(template.agents.data_dir, self.home / ".cleveragents")
        self.agents = Agents(self.home, self.project.path)

    def write_action(self, content: Mapping[str, Any], name: str = "a.yaml") -> str:
        """JSON is YAML; beside the project, so that the project stays clean."""
        path = self.top / name
        path.write_text(json.dumps({"confinement": {"write": [str(self.beside)]}, **content}))
        return str(path)

    def use(self, *steps: Step, **keys: Any) -> PlanHandle:
        path = self.write_action(action(*steps, **keys))
        return PlanHandle(self.agents, self.agents("plan", "use", path).ok().data["plan_id"])

    def run(self, *steps: Step, **keys: Any) -> PlanHandle:
        plan = self.use(*steps, **keys)
        plan.execute().ok()
        return plan

    def keep_nothing(self) -> "World":
        """Of what applies replace: then an apply is final, and leaves nothing."""
        self.agents("config", "set", "apply.keep", "0").ok()
        return self

    def run_in_project(self, command: str) -> None:
        """As its user would type it there."""
        argv = ["/bin/sh", "-ec", command]
        environ = self.agents.environ
        subprocess.run(argv, cwd=self.project.path, env=environ, check=True, capture_output=True)

    def replay(self, commands: Sequence[str]) -> list[Tree]:
        """The truth by other means: the tree before the first command and after each of them."""
        copy = self.top / "replayed"
        self.project.git("clone", "-q", "--no-hardlinks", str(self.project.path), str(copy))
        trees = [tree_of(copy)]
        for command in commands:
            subprocess.run(
                ["/bin/sh", "-c", command], cwd=copy, env=self.agents.environ, check=True
            )
            trees.append(tree_of(copy))
        return trees

    def records(self) -> list[str]:
        """The whole database and every snapshot as text, to show that nothing changed."""
        files = sorted((self.agents.data_dir / "snapshots").glob("*.db"))
        return [*self.metadata(), *(line for file in files for line in _dump(file))]

    def metadata(self) -> list[str]:
        """What is on record of all plans, without how often somebody had their locks."""
        with closing(sqlite3.connect(":memory:")) as copy:
            with closing(sqlite3.connect(self.agents.data_dir / "cleveragents.db")) as database:
                database.backup(copy)
            copy.execute("UPDATE plans SET lease_epoch = 0")
            copy.commit()
            return list(copy.iterdump())

    def plan_count(self) -> int:
        return len(self.agents("plan", "list").ok().data["plans"])


def copy_database(source: Path, target: Path) -> None:
    target.mkdir(mode=0o700)
    with (
        closing(sqlite3.connect(source / "cleveragents.db")) as old,
        closing(sqlite3.connect(target / "cleveragents.db")) as new,
    ):
        old.backup(new)


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _dump(file: Path) -> Iterator[str]:
    with closing(sqlite3.connect(file)) as database:
        yield from database.iterdump()
