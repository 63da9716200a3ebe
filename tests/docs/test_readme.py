"""The README's own example, typed to the letter by somebody who has nothing yet."""

import contextlib
import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
# What comes before it is how to install, which tests/packaging tries.
EXAMPLE = README[README.index("In a git repository of yours") :]


def fenced(kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```$", EXAMPLE, re.DOTALL | re.MULTILINE)
    assert found is not None, kind
    return found[1]


class Newcomer:
    """At a terminal, in a repository and a home of their own; says yes to everything."""

    def __init__(self, top: Path) -> None:
        self._home, self.place = top / "home", top / "home/project"
        self.place.mkdir(parents=True)
        who = "[user]\n\tname = You\n\temail = you@example.org\n"
        (self._home / ".gitconfig").write_text(who)
        (self.place / "README.md").write_text("mine\n")
        places = (str(Path(sys.executable).parent), os.environ["PATH"])
        self._environ = {"HOME": str(self._home), "PATH": os.pathsep.join(places)}
        self.ok("git init -q && git add -A && git commit -qm mine")
        (self.place / "hello.yaml").write_text(fenced("yaml"))
        (self.place / "hi.yaml").write_text(fenced('yaml title="hi.yaml"'))

    def type(self, line: str) -> "subprocess.CompletedProcess[str]":
        terminal, theirs = pty.openpty()
        seeing = threading.Thread(target=_look_at, args=(terminal,))
        seeing.start()
        os.write(terminal, b"y\n")
        try:
            return subprocess.run(
                ["bash", "-c", line],
                cwd=self.place,
                env=self._environ,
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=theirs,
                text=True,
                check=False,
            )
        finally:
            os.close(theirs)
            seeing.join()
            os.close(terminal)

    def ok(self, line: str) -> str:
        done = self.type(line)
        assert done.returncode == 0, (line, done.stdout)
        return done.stdout


def _look_at(terminal: int) -> None:
    """Whoever looks away from a terminal stops what writes there, once it is full."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path)


def test_the_example_ends_as_the_readme_says(newcomer: Newcomer) -> None:
    lines = fenced("sh").splitlines()
    assert all(line.startswith("agents plan ") for line in lines)
    said: dict[str, str] = {}
    for line in lines:
        said[line.split()[2]] = newcomer.ok(line)

    assert said.keys() == {"use", "execute", "rollback", "resume", "correct", "apply"}
    for shown in fenced("text").splitlines():
        assert re.search(re.escape(shown).replace("…", r"\w+ *"), said["correct"]), said["correct"]
    (promised,) = re.findall(r"your `hello.txt` says `([^`]+)`", EXAMPLE)
    assert (newcomer.place / "hello.txt").read_text() == f"{promised}\n"
    assert len(newcomer.ok("git log --oneline").splitlines()) == 2
    assert newcomer.ok("git show --name-only --format=").split() == ["hello.txt"]


def test_had_the_greeting_become_hi_the_check_had_failed_and_apply_refused(
    newcomer: Newcomer,
) -> None:
    hi = newcomer.place / "hi.yaml"
    hi.write_text(hi.read_text().replace("Hello, and hi", "Hi"))
    lines = {line.split()[2]: line for line in fenced("sh").splitlines()}
    for word in ("use", "execute"):
        newcomer.ok(lines[word])

    corrected = newcomer.type(lines["correct"])
    applied = newcomer.type(lines["apply"])

    assert (corrected.returncode, applied.returncode) == (1, 1)
    assert not (newcomer.place / "hello.txt").exists()


def first_screen(first: str) -> list[str]:
    """The lines of the example that begins so."""
    before, _, _ = README.partition("## Plans that you write down")
    blocks = [block.split("```")[0].splitlines() for block in before.split("```sh\n")[1:]]
    (found,) = [block for block in blocks if block[0].startswith(first)]
    assert README[: README.index(found[0])].count("\n") < 30, "on the first screen"
    return [line.partition("#")[0].strip() for line in found]


def test_a_first_mistake_is_undone_in_the_two_lines_after_the_installation(
    newcomer: Newcomer,
) -> None:
    readme = newcomer.place / "README.md"
    run, undo = first_screen("agents run --in-place")

    newcomer.ok(f"{run} </dev/null")
    assert readme.read_text() == "oops\n"
    newcomer.ok(undo)

    assert readme.read_text() == "mine\n"


def test_the_same_in_a_sandbox_is_one_line_below(newcomer: Newcomer) -> None:
    (run,) = first_screen("agents run -- ")

    newcomer.ok(f"{run} </dev/null")
    assert "+oops" in newcomer.ok("agents diff")
    newcomer.ok("agents undo")

    assert "oops" not in newcomer.ok("agents diff")
    assert (newcomer.place / "README.md").read_text() == "mine\n"
