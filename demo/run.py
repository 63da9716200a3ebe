"""Shows the main job: an agent breaks code and data, one rollback, one correction, apply.

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

from world import ADVICE, DATABASE, ROOT, THE_MIGRATION, World, fingerprints

WIDEST, NARROWEST = 100, 80
NEW, MOVED, CHANGED = "shop/money.py", "shop/euros.py", "shop/invoice.py"
PROVED = (MOVED, CHANGED, "tests/test_invoice.py", DATABASE)


class Stage:
    """Tells the story: says what comes, types a command, runs it, and checks what it claims."""

    def __init__(self, world: World, *, fast: bool) -> None:
        self.world = world
        self._colours = sys.stdout.isatty()
        self._pause = 0.0 if fast or not self._colours else 0.7

    def title(self, text: str) -> None:
        rule = "─" * max(3, self.world.width - len(text) - 4)
        self._write(f"\n{self._painted('1;36', f'── {text} {rule}')}\n", pause=self._pause)

    def say(self, text: str) -> None:
        self._write(f"{self._painted('36', text)}\n", pause=self._pause)

    def run(self, *argv: str, expected: int = 0, shown: tuple[int, int] | None = None) -> None:
        """Type and run a command; `shown`: how many lines of a long answer, first and last."""
        self._write(f"\n{self._painted('1', '$ ' + shlex.join(argv))}\n", pause=self._pause / 2)
        done = subprocess.run(
            self._as_on_a_terminal(argv),
            cwd=self.world.shop,
            env=self.world.environment | ({"FORCE_COLOR": "1"} if self._colours else {}),
            # In a file, what belongs together stays together.
            stderr=None if self._colours else subprocess.STDOUT,
            stdout=None if shown is None else subprocess.PIPE,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if shown is not None:
            lines, (first, last) = done.stdout.splitlines(), shown
            left_out = self._painted("2", f"  … {len(lines) - first - last} lines …")
            self._write("\n".join([*lines[:first], left_out, *lines[-last:]]) + "\n", pause=0)
        check(done.returncode == expected, f"exit code {done.returncode}, expected {expected}")
        time.sleep(self._pause)

    def hashes(self, before: dict[str, str], broken: dict[str, str], back: dict[str, str]) -> None:
        """The sha256 of files at three moments."""
        self.say(f"\n  {'sha256':<24}{'before':<16}{'broken':<16}after the rollback")
        for path in PROVED:
            was, wrong, now = (short(found, path) for found in (before, broken, back))
            wrong = wrong.ljust(16) if wrong == was else self._painted("31", wrong.ljust(16))
            mark = self._painted("1;32", "✓ same") if now == was else self._painted("31", "✗")
            self._write(f"  {path:<24}{was:<16}{wrong}{now:<14}{mark}\n", pause=0)
        time.sleep(self._pause)

    def passed(self, text: str) -> None:
        self._write(f"{self._painted('1;32', '✓ ' + text)}\n", pause=self._pause)

    def _as_on_a_terminal(self, argv: tuple[str, ...]) -> list[str]:
        return [argv[0], *(("--format", "rich") if argv[0] == "agents" else ()), *argv[1:]]

    def _painted(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours else text

    @staticmethod
    def _write(text: str, *, pause: float) -> None:
        # The commands write to the same place by themselves, so ours must be out before.
        sys.stdout.write(text)
        sys.stdout.flush()
        time.sleep(pause)


def short(found: dict[str, str], path: str) -> str:
    return found.get(path, "deleted")[:12].partition(" ")[0]


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
    before = fingerprints(world.shop)

    the_agent_breaks_both(stage)
    broken = the_harm_is_only_in_the_sandboxes(stage, before)
    one_rollback(stage, before, broken)
    one_correction(stage, before)
    apply(stage, before)

    seconds = time.monotonic() - started
    stage.passed(f"It worked: broken, taken back, corrected, applied, in {seconds:.1f} s.")


def the_agent_breaks_both(stage: Stage) -> None:
    stage.title("1  A shop: code in git, orders in SQLite. An agent is let loose on both")
    stage.run("agents", "plan", "use", stage.world.action)
    stage.run("agents", "plan", "execute", "latest", expected=1)


def the_harm_is_only_in_the_sandboxes(stage: Stage, before: dict[str, str]) -> dict[str, str]:
    world = stage.world
    stage.title("2  What has it done? It deleted code that is needed, and cut the cents off")
    stage.run("agents", "plan", "diff", "latest", shown=(7, 8))
    stage.run("git", "status", "--short", "--branch")
    check(fingerprints(world.shop) == before, "the project changed before apply")
    stage.passed("all of that in sandboxes: not a byte of the shop has changed")
    broken = world.in_sandboxes()
    check(MOVED not in broken, "the agent deleted nothing")
    check(broken[DATABASE] != before[DATABASE], "the agent did not touch the database")
    return broken


def one_rollback(stage: Stage, before: dict[str, str], broken: dict[str, str]) -> None:
    stage.title("3  One rollback takes code and database back together")
    stage.run("agents", "plan", "rollback", "--yes", "latest", THE_MIGRATION)
    back = stage.world.in_sandboxes()
    stage.hashes(before, broken, back)
    check(back.keys() == before.keys() | {NEW}, "files are missing or left over")
    check(before.items() <= back.items(), "something did not come back byte for byte")
    stage.passed(f"byte for byte, and the good step before it, {NEW}, is still there")


def one_correction(stage: Stage, before: dict[str, str]) -> None:
    world = stage.world
    stage.title("4  One correction: the agent knows again what it knew then, and hears advice")
    words = ("agents", "plan", "correct", "--yes", "--mode", "revert", "--guidance", ADVICE)
    stage.run(*words, world.decision("to_cents"), shown=(11, 3))
    check(fingerprints(world.shop) == before, "the project changed before apply")


def apply(stage: Stage, before: dict[str, str]) -> None:
    world = stage.world
    stage.title("5  Apply: one commit and one database, or neither")
    stage.run("agents", "plan", "apply", "--yes", "latest")
    after = fingerprints(world.shop)
    check(after.keys() == (before.keys() | {NEW}) - {MOVED}, "files lack, or are too many")
    check(world.orders() == [1999, 705, 12050], "the orders are not in cents")
    stage.run("git", "log", "--oneline")
    stage.run("python", "-m", "unittest")
    check(len(world.output("git", "log", "--oneline").splitlines()) == 2, "not one new commit")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as problem:
        sys.exit(f"\nThe demo failed: {problem}")
