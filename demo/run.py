"""Shows the main job: a plan that goes wrong, the way back, and the right result applied.

Every command is really run, in a repository under .demo/ with a home of its own, and every claim
is checked: the exit status is not 0 if one does not hold.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from world import (
    AFTER_THE_GENERATOR,
    BEFORE_THE_GENERATOR,
    FULL_FEED,
    ROOT,
    World,
    fingerprints,
)

WIDEST, NARROWEST = 100, 80
RATES = "shop/rates/"
NEW_FILES = {"shop/discount.py", "tests/test_discount.py"}
CHANGED_FILES = {"shop/__init__.py"}


class Stage:
    """Tells the story: says what comes, types a command, runs it, and checks what it claims."""

    def __init__(self, world: World, *, fast: bool) -> None:
        self.world = world
        self._colours = sys.stdout.isatty()
        self._pause = 0.0 if fast or not self._colours else 0.7

    def title(self, text: str) -> None:
        self._write(f"\n{self._painted('1;36', f'── {text} ──')}\n", pause=self._pause)

    def say(self, text: str) -> None:
        self._write(f"{self._painted('36', text)}\n", pause=self._pause)

    def run(self, *argv: str, expected: int = 0, format: str = "rich") -> None:
        self._write(f"\n{self._painted('1', '$ ' + shlex.join(argv))}\n", pause=self._pause / 2)
        shown_as = ("--format", format) if argv[0] == "agents" else ()
        done = subprocess.run(
            [argv[0], *shown_as, *argv[1:]],
            cwd=self.world.shop,
            env=self.world.environment,
            # In a file, what belongs together stays together.
            stderr=None if self._colours else subprocess.STDOUT,
            check=False,
        )
        check(done.returncode == expected, f"exit code {done.returncode}, expected {expected}")
        time.sleep(self._pause)

    def hashes(self, where: str, found: dict[str, str], compared: dict[str, str]) -> None:
        """The sha256 of what the generator touches, each marked by whether it is as it was."""
        self.say(f"\nsha256 of {RATES}* in {where}")
        for path in sorted(path for path in compared if path.startswith(RATES)):
            short = found.get(path, "deleted").partition(" ")[0][:32]
            same = found.get(path) == compared[path]
            mark = self._painted("1;32", "✓ same") if same else self._painted("1;31", "✗ differs")
            self._write(f"  {path:<22} {short:<32} {mark}\n", pause=0)
        time.sleep(self._pause)

    def passed(self, text: str) -> None:
        self._write(f"{self._painted('1;32', '✓ ' + text)}\n", pause=self._pause)

    def _painted(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours else text

    @staticmethod
    def _write(text: str, *, pause: float) -> None:
        # The commands write to the same place by themselves, so ours must be out before.
        sys.stdout.write(text)
        sys.stdout.flush()
        time.sleep(pause)


def check(holds: bool, claim: str) -> None:  # noqa: FBT001 - like assert, which -O would drop
    if not holds:
        raise AssertionError(claim)


def main() -> None:
    parser = argparse.ArgumentParser(description="Show the main job where it can be watched.")
    parser.add_argument("--fast", action="store_true", help="leave the pauses out")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".demo", help="made anew; default: .demo"
    )
    options = parser.parse_args()
    started = time.monotonic()
    columns = shutil.get_terminal_size((WIDEST, 24)).columns
    world = World(options.folder.resolve(), width=min(max(columns, NARROWEST), WIDEST))
    world.build()
    stage = Stage(world, fast=options.fast)
    original = fingerprints(world.shop)

    the_shop(stage)
    plan_id = the_plan_goes_wrong(stage, original)
    the_way_back(stage, plan_id, original)
    the_right_result(stage, plan_id, original)

    seconds = time.monotonic() - started
    stage.passed(f"It worked: wrong step undone, right result applied, in {seconds:.1f} s.")


def the_shop(stage: Stage) -> None:
    stage.title("A small shop, in git, with a test that passes")
    stage.run("git", "log", "--oneline")
    stage.run("git", "ls-files")
    stage.run("python", "-m", "unittest", "--quiet")


def the_plan_goes_wrong(stage: Stage, original: dict[str, str]) -> str:
    world = stage.world
    stage.title("An agent gets a job of five steps")
    stage.say("It writes a discount and its test, then lets a generator renew the tax rates.")
    stage.run("agents", "plan", "use", world.action)
    plan_id = world.plan_id()
    stage.run("agents", "plan", "execute", plan_id, expected=1)

    stage.title("What happened?")
    stage.run("agents", "plan", "errors", plan_id)
    # Where the table does not fit, one line per checkpoint is easier to follow.
    shape = "rich" if world.width >= WIDEST else "color"
    stage.run("agents", "plan", "checkpoint", "list", plan_id, format=shape)
    stage.run(
        *("agents", "plan", "checkpoint", "diff", plan_id),
        *(BEFORE_THE_GENERATOR, AFTER_THE_GENERATOR),
    )
    stage.say("The generator believed an empty feed and deleted every rate. In the sandbox only:")
    stage.run("git", "status", "--short", "--branch")
    check(fingerprints(world.shop) == original, "the project changed before apply")
    stage.passed("not a byte of the project has changed")
    return plan_id


def the_way_back(stage: Stage, plan_id: str, original: dict[str, str]) -> None:
    world = stage.world
    sandbox = world.sandbox(plan_id)
    stage.title("Back to the moment before the generator ran")
    broken = fingerprints(sandbox)
    stage.hashes("the sandbox now, against the project", broken, original)
    check("shop/rates/de.py" not in broken, "the generator deleted nothing")
    stage.run("agents", "plan", "rollback", "--yes", plan_id, BEFORE_THE_GENERATOR)
    restored = fingerprints(sandbox)
    stage.hashes("the sandbox after the rollback", restored, original)
    untouched = {path: mark for path, mark in original.items() if path not in CHANGED_FILES}
    check(restored.keys() == original.keys() | NEW_FILES, "files are missing or left over")
    check(untouched.items() <= restored.items(), "a file did not come back byte for byte")
    stage.passed("every file is back byte for byte, and the three good steps are still there")


def the_right_result(stage: Stage, plan_id: str, original: dict[str, str]) -> None:
    world = stage.world
    stage.title("The feed is repaired, so the plan goes on where it stands")
    world.write_feed(FULL_FEED)
    stage.run("agents", "plan", "resume", plan_id)
    check(fingerprints(world.shop) == original, "the project changed before apply")
    stage.passed("the project is still untouched")
    stage.run("agents", "plan", "apply", "--yes", plan_id)
    after = fingerprints(world.shop)
    check(after.keys() == original.keys() | NEW_FILES, "the project lacks files, or has too many")

    stage.title("The shop now")
    stage.run("git", "log", "--oneline")
    stage.run("git", "status", "--short", "--branch")
    stage.run("python", "-m", "unittest", "--quiet")
    check(len(world.output("git", "log", "--oneline").splitlines()) == 2, "not one new commit")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as problem:
        sys.exit(f"\nThe demo failed: {problem}")
