"""Judges one state after a cut: everything promised is there, and people can go on from it."""

import contextlib
import random
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.agents import Agents, Answer
from tests.support.power import model
from tests.support.power.model import State
from tests.support.power.promises import Promises
from tests.support.power.recorder import Command
from tests.support.power.scenarios import FIRST, Scenario

# How many steps were done when such a group was made, counted from the one that it names.
_STEPS_DONE = {"decision": 0, "on_tool_write": 0, "on_tool_write_complete": 1, "manual": 0}
_COMPLETE = "complete"


class StuckError(Exception):
    """A way to go on was refused, which is found already."""


@dataclass(slots=True)
class Verdict:
    """What was found wrong, and what was typed to find it."""

    findings: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    typed: list[str] = field(default_factory=list[str])

    def find(self, kind: str, text: str) -> None:
        self.findings.append({"kind": kind, "text": text[:1500]})


class Judge:
    """One scenario's world, mounted again after a cut."""

    def __init__(
        self, scenario: Scenario, commands: list[Command], promises: Promises, seed: str
    ) -> None:
        self.scenario = scenario
        self.commands = commands
        self.promises = promises
        self.chance = random.Random(seed)
        self.verdict = Verdict()
        self.places: dict[str, Path] = {}
        self.mended = False
        self.agents = self.agents_of(scenario)
        self.length = len(scenario.steps(next(iter(promises.variants))))

    @staticmethod
    def agents_of(scenario: Scenario) -> Agents:
        return Agents(scenario.home, scenario.cwd, scenario.environ)

    # --- tools ------------------------------------------------------------------------------------

    def type(self, *words: str) -> Answer:
        """A command in a process of its own; whatever it says, it says in the promised shape."""
        answer = self.agents.fork(*words).answer()
        told = ""
        text = answer.out + answer.err
        if "Traceback" in text or "internal-error" in text or not answer.out:
            self.verdict.find("broken", f"{words}: {text}")
            answer = Answer(argv=words, code=answer.code or 70, out='{"data": {}}', err=answer.err)
        if answer.code and "error" in answer.data:
            told = f" {answer.error['code']}: {answer.error['message'][:300]}"
        self.verdict.typed.append(f"{' '.join(words)} -> {answer.code}{told}")
        return answer

    def must(self, kind: str, *words: str) -> None:
        """What people would do next; there is no next if it is refused."""
        if self.type(*words).code:
            self.verdict.find(kind, self.verdict.typed[-1])
            raise StuckError

    def compare(self, what: str, found: State, allowed: Iterable[State]) -> bool:
        told = [model.differences(found, wanted) for wanted in allowed]
        fewest = min(told, key=len)
        if fewest:
            self.verdict.find("wrong", f"{what}: {len(fewest)} differ: {'; '.join(fewest[:4])}")
        return not fewest

    def git(self, *words: str) -> tuple[int, str]:
        """Looking changes nothing."""
        environ = {**self.scenario.environ, "GIT_OPTIONAL_LOCKS": "0"}
        argv = ["git", "-C", str(self.scenario.places["code"]), *words]
        done = subprocess.run(argv, env=environ, capture_output=True, check=False)
        text = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
        return done.returncode, text

    # --- the user's project -----------------------------------------------------------------------

    def project(self, moment: str, *, applied: bool, variants: Iterable[str]) -> None:
        """Untouched, or with all of the plan's result."""
        places = self.scenario.places
        found = {name: model.read(name, place) for name, place in places.items()}
        untouched = self.scenario.state(0, next(iter(variants)))
        ends = [self.scenario.state(self.length, variant) for variant in variants]
        allowed = ends if applied else [untouched]
        if applied and "--branch" in self.scenario.apply_words:
            self._on_branch(moment, ends)
            allowed = [{**end, "code": untouched["code"]} for end in ends]
        self.compare(f"project {moment}", found, allowed)
        if "code" in places:
            self.repository(moment)
            self._commits(moment, applied=applied)

    def repository(self, moment: str) -> None:
        """Git can read all of it, and holds no broken thing of ours."""
        code, text = self.git("fsck", "--full", "--no-dangling", "--no-progress")
        lines = [line for line in text.splitlines() if not line.startswith("notice:")]
        if code or lines:
            self.verdict.find("git", f"fsck {moment}: {code} {' | '.join(lines)}")

    def _commits(self, moment: str, *, applied: bool) -> None:
        commits = applied and not {"--branch", "--no-commit"} & {*self.scenario.apply_words}
        code, text = self.git("rev-list", "--count", "HEAD")
        if (code, text) != (0, "2" if commits else "1"):
            self.verdict.find("git", f"commits {moment}: {code} {text}")
        code, text = self.git("status", "--porcelain")
        dirty = applied and "--no-commit" in self.scenario.apply_words
        if code or bool(text) != dirty:
            self.verdict.find("git", f"status {moment}: {code} {text[:400]}")

    def _on_branch(self, moment: str, ends: list[State]) -> None:
        branch = self.scenario.apply_words[1]
        code, names = self.git("ls-tree", "-r", "-z", "--name-only", branch)
        if code:
            self.verdict.find("git", f"branch {moment}: {names}")
            return
        found: State = {"code": {}}
        for name in names.strip("\0").split("\0"):
            found["code"][name] = self._blob(f"{branch}:{name}")
        self.compare(f"branch {moment}", found, [{"code": end["code"]} for end in ends])

    def _blob(self, name: str) -> bytes:
        argv = ["git", "-C", str(self.scenario.places["code"]), "cat-file", "blob", name]
        done = subprocess.run(argv, env=self.scenario.environ, capture_output=True, check=False)
        return done.stdout

    # --- the plan ---------------------------------------------------------------------------------

    def sandboxes(self, moment: str, plan: str, done: int, variants: Iterable[str]) -> bool:
        if not self.places:
            status = self.type("plan", "status", plan).data
            boxes = status.get("sandboxes", ())
            self.places = {box["resource"]: Path(box["path"]) for box in boxes}
        projects = self.scenario.places
        found = {name: model.read(name, p, projects.get(name)) for name, p in self.places.items()}
        wanted = [self.scenario.state(done, variant) for variant in variants]
        return self.compare(f"sandboxes {moment}", found, wanted)

    def groups(self, plan: str) -> dict[str, Mapping[str, Any]]:
        listed = self.type("plan", "checkpoint", "list", plan).data
        return {row["group_id"]: row for row in listed.get("checkpoints", ())}

    def variants_of(self, group: str) -> frozenset[str]:
        """What the steps were when the group was made: by the first command that listed it."""
        for command in self.commands:
            if group in command.groups:
                return frozenset(command.variants)
        return self.promises.variants

    def promised(self) -> str | None:
        """Whether all that was told is there; the plan to go on with."""
        promises = self.promises
        plans = [row["plan_id"] for row in self.type("plan", "list").data.get("plans", ())]
        if promises.plan is None:
            return plans[0] if plans else None
        if promises.plan not in plans:
            self.verdict.find("lost", f"plan {promises.plan}")
            return None
        if not promises.applied and not promises.applying and not promises.ending:
            self._groups_promised(promises.plan)
        self._progress_promised(promises.plan)
        return promises.plan

    def _groups_promised(self, plan: str) -> None:
        have = self.groups(plan)
        lost = self.promises.groups - have.keys()
        # What mending keeps is a group more, for which another goes where few are kept.
        if lost and not (self.mended and self.scenario.few_are_kept):
            self.verdict.find("lost", f"{len(lost)} of {len(self.promises.groups)} groups: {lost}")
        labels = self.promises.labels - {row["label"] for row in have.values()}
        if labels:
            self.verdict.find("lost", f"labels {labels}")
        if have:
            words = self.chance.choice(
                (("plan", "checkpoint", "verify", plan), ("store", "verify"))
            )
            if self.type(*words).code:
                self.verdict.find("verify", self.verdict.typed[-1])

    def _progress_promised(self, plan: str) -> None:
        status = self.type("plan", "status", plan).data
        step, state = status.get("last_completed_step", -2), status.get("state")
        promises = self.promises
        if step < promises.step or (promises.exact and promises.state and step > promises.step):
            self.verdict.find("lost", f"last completed step is {step}, not {promises.step}")
        if promises.state is not None and state != promises.state:
            self.verdict.find("lost", f"state is {state}, not {promises.state}")

    # --- the whole judgement ----------------------------------------------------------------------

    def judge(self) -> Verdict:
        promises = self.promises
        with contextlib.suppress(FileExistsError):
            self.scenario.open_gate()
        if promises.applying:
            if "code" in self.scenario.places:
                self.repository("found in the middle of an apply")
        else:
            self.project("found", applied=promises.applied, variants=promises.variants)
        if self.chance.random() < 0.5 and (self.scenario.home / ".cleveragents").exists():
            self.doctor("first")
        plan = self.promised()
        if promises.plan is not None and plan is None:
            return self.verdict
        self._end(plan or self._used())
        self.doctor("last")
        if "code" in self.scenario.places:
            self._references()
        return self.verdict

    def _references(self) -> None:
        """What was applied without a commit is kept; nothing else of ours."""
        _, text = self.git("for-each-ref", "--format=%(refname)", "refs/cleveragents")
        kept = "refs/cleveragents/applied/" if "--no-commit" in self.scenario.apply_words else ":"
        left = [line for line in text.splitlines() if not line.startswith(kept)]
        if left:
            self.verdict.find("left", " | ".join(left))

    def _used(self) -> str:
        answer = self.type("plan", "use", self.scenario.file)
        if answer.code:
            self.verdict.find("stuck", self.verdict.typed[-1])
        return str(answer.data.get("plan_id", ""))

    def doctor(self, moment: str) -> None:
        """What it finds it mends, except for an apply, or the undo of one, that people have to
        finish."""
        if not self.type("doctor").code:
            return
        self.mended = True
        self.type("doctor", "--fix", "--yes")
        answer = self.type("doctor")
        theirs = {"apply": "plan apply", "undo": "agents undo", "redo": "agents redo"}
        word = theirs.get(self.promises.under_way or "")
        if answer.code and not (word and word in answer.out):
            self.verdict.find("doctor", f"{moment}: not mended: {answer.out}")

    def _end(self, plan: str) -> None:
        promises = self.promises
        if promises.applied or promises.applying:
            self.apply_again(plan)
        elif promises.ending:
            self.end_again(plan)
        else:
            self.go_on(plan)

    def apply_again(self, plan: str) -> None:
        answer = self.type("plan", "apply", "--yes", *self.scenario.apply_words, plan)
        if answer.code and answer.data.get("error", {}).get("code") != "plan-applied":
            self.verdict.find("stuck", self.verdict.typed[-1])
        self.project("applied again", applied=True, variants=self.promises.variants)
        self.undone(plan, self.promises.variants)

    def undone(self, plan: str, variants: frozenset[str]) -> None:
        """What is in the project can be taken back and brought again, and let go of in the end."""
        answer = self.type("undo", "--yes", "--plan", plan)
        if not answer.code:
            self.project("undone", applied=False, variants=variants)
            answer = self.type("redo", "--yes", "--plan", plan)
            self.project("redone", applied=True, variants=variants)
        if answer.code and answer.data.get("error", {}).get("code") != "apply-not-kept":
            self.verdict.find("stuck", self.verdict.typed[-1])
        with contextlib.suppress(StuckError):
            self.must("stuck", "plan", "discard", "--yes", plan)

    def end_again(self, plan: str) -> None:
        if self.promises.under_way == "cancel":
            self.type("plan", "cancel", plan)
        with contextlib.suppress(StuckError):
            self.must("stuck", "plan", "discard", "--yes", plan)
        self.project("discarded", applied=False, variants=self.promises.variants)
        left = [str(path) for path in self.agents.data_dir.glob("sandboxes/*")]
        if left:
            self.verdict.find("left", str(left))

    def go_on(self, plan: str) -> None:
        """One of the ways to go on, then through to the project."""
        variants = self.promises.variants
        ways = ["execute", "resume", "back first", "at once"]
        way = self.chance.choice(ways if self.promises.groups else ways[:2])
        try:
            if way == "back first":
                variants = self.back(plan)
            if way != "at once" or not self._complete(plan):
                variants = self.through(plan, way if way == "resume" else "execute", variants)
            self.must("stuck", "plan", "apply", "--yes", *self.scenario.apply_words, plan)
        except StuckError:
            return
        self.project("at the end", applied=True, variants=variants)
        self.undone(plan, variants)

    def _complete(self, plan: str) -> bool:
        """Not if a rollback was cut off, which status says: the next command finishes it, and then
        there are steps to do."""
        answer = self.type("plan", "status", plan)
        return answer.data.get("state") == "complete" and "interrupted" not in answer.out

    def through(self, plan: str, word: str, variants: frozenset[str]) -> frozenset[str]:
        """Every step done, then back to some moment and through again."""
        self.must("stuck", "plan", word, plan)
        self.sandboxes(f"after {word}", plan, self.length, variants)
        if self.chance.random() < 0.5:
            variants = self.back(plan)
            self.must("stuck", "plan", "execute", plan)
            self.sandboxes("after all again", plan, self.length, variants)
        return variants

    def _is_known(self, group: str, row: Mapping[str, Any]) -> bool:
        """While a correction is at work, steps are not done in their order."""
        in_order = self.variants_of(group) == {FIRST}
        return in_order and row["reason"] in (*_STEPS_DONE, _COMPLETE)

    def back(self, plan: str) -> frozenset[str]:
        """To a moment of which all is known."""
        groups = self.groups(plan)
        known = sorted(group for group, row in groups.items() if self._is_known(group, row))
        if not known:
            return self.promises.variants
        group = self.chance.choice(known)
        row, variants = groups[group], self.variants_of(group)
        done = self.length
        if row["reason"] != _COMPLETE:
            done = row["step_index"] + _STEPS_DONE[row["reason"]]
        answer = self.type("plan", "rollback", "--yes", plan, group)
        if answer.code and group not in self.groups(plan):
            return self.promises.variants  # what was cut off has been finished first, and pruned it
        if answer.code:
            self.verdict.find("stuck", self.verdict.typed[-2])
            raise StuckError
        self.sandboxes(f"gone back to {row['label']}", plan, done, variants)
        return variants
