"""The fork server: what it starts, what that finds, and that nothing outlives anybody."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.living import all_gone, living_with
from tests.support.runners import in_folder

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.errors import ToolError
from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.confinement.machine import Machine
from cleveragents.infrastructure.processes.forking.fork_server import ForkServer
from cleveragents.infrastructure.processes.forking.served_process import ServedProcess
from cleveragents.infrastructure.processes.own_work import OwnWork, Work
from cleveragents.infrastructure.processes.process_tree import place_of
from cleveragents.infrastructure.processes.runner import Command, ProcessRunner

HERE = Machine(os.environ["PATH"])
pytestmark = pytest.mark.skipif(
    not HERE.process_table or HERE.landlock < 1, reason="not allowed on this machine"
)


@pytest.fixture
def server() -> Generator[ForkServer]:
    server = ForkServer()
    server.begin()
    yield server
    server.close()


@pytest.fixture
def runner(server: ForkServer, tmp_path: Path) -> ProcessRunner:
    return ProcessRunner(_confiner(tmp_path), server, 10_000)


@pytest.fixture
def long() -> str:
    return f"60.{uuid.uuid4().int % 10**12}"


def _confiner(tmp_path: Path) -> Confiner:
    environ = {"PATH": os.environ["PATH"], "SECRET": "the password"}
    return Confiner(environ=environ, scratch=str(tmp_path / "scratch"), process_limit=200)


def shell(script: str, folder: Path, *words: str) -> Command:
    folder.mkdir(exist_ok=True)
    return Command(
        name="shell",
        argv=["/bin/sh", "-c", script, *words],
        folder=str(folder),
        sandboxes={"here": in_folder(folder)},
        timeout=20,
    )


def server_of(runner: ProcessRunner, folder: Path) -> int:
    """The process that starts its commands."""
    with runner.started(shell("sleep 5", folder), runner.limits(20)) as running:
        assert isinstance(running.process, ServedProcess)
        place = place_of(running.process.pid)
        assert place is not None
        return place.parent


def test_the_first_command_is_started_by_ourselves_and_begins_a_server(tmp_path: Path) -> None:
    server = ForkServer()
    runner = ProcessRunner(_confiner(tmp_path), server, 10_000)
    command = shell("sleep 5", tmp_path / "here")
    kinds: list[bool] = []
    for _ in range(2):
        with runner.started(command, runner.limits(20)) as running:
            kinds.append(isinstance(running.process, ServedProcess))
    server.close()
    assert kinds == [False, True]


def test_a_second_thread_waits_for_it_and_makes_no_copy_of_us(tmp_path: Path) -> None:
    """In a copy, what other threads hold is held for ever."""
    server = ForkServer()
    runner = ProcessRunner(_confiner(tmp_path), server, 10_000)
    kinds: list[bool] = []

    def start() -> None:
        with runner.started(shell("sleep 5", tmp_path / "here"), runner.limits(20)) as running:
            kinds.append(isinstance(running.process, ServedProcess))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    server.close()
    assert kinds == [True]


def test_it_knows_nothing_and_stands_nowhere(runner: ProcessRunner, tmp_path: Path) -> None:
    found = Path(f"/proc/{server_of(runner, tmp_path / 'here')}")
    assert found.joinpath("environ").read_bytes() == b""
    assert str((found / "cwd").readlink()) == "/"
    opened = [str(path.readlink()) for path in (found / "fd").iterdir()]
    assert not [name for name in opened if str(tmp_path) in name]


def test_no_file_stays_open_and_no_process_is_left(
    runner: ProcessRunner, server: ForkServer, tmp_path: Path
) -> None:
    folder = tmp_path / "here"
    number = server_of(runner, folder)
    ours, theirs = Path("/proc/self/fd"), Path(f"/proc/{number}/fd")
    before = len(list(ours.iterdir())), len(list(theirs.iterdir()))
    for _ in range(3):
        runner.run(shell("true", folder))
        with pytest.raises(ToolError):
            runner.run(replace(shell("", folder), argv=["no-such-program"]))
    assert (len(list(ours.iterdir())), len(list(theirs.iterdir()))) == before
    server.close()
    assert place_of(number) is None


def test_open_files_are_passed_on_under_their_numbers(
    runner: ProcessRunner, tmp_path: Path
) -> None:
    read, written = os.pipe()
    low, high = written, fcntl.fcntl(written, fcntl.F_DUPFD_CLOEXEC, 77)
    try:
        tell = f"import os; os.write({high}, b'high '); os.write({low}, b'low')"
        script = f'{sys.executable} -c "{tell}"; ls /proc/$$/fd'
        listed = runner.run(replace(shell(script, tmp_path / "here"), passed=(high, low))).output
        assert os.read(read, 99) == b"high low"
        assert {int(word) for word in listed.split()} == {0, 1, 2, high, low}
    finally:
        for number in (read, low, high):
            os.close(number)


def test_bytes_that_are_no_text_arrive_as_they_are(runner: ProcessRunner, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    word = os.fsdecode(b"\xff\xfe")
    command = shell('printf %s "$1$VALUE" > out', folder, "sh", word)
    runner.run(replace(command, variables={"VALUE": word}))
    assert (folder / "out").read_bytes() == b"\xff\xfe\xff\xfe"


def test_what_a_program_reads_and_prints_is_passed_through(
    server: ForkServer, tmp_path: Path
) -> None:
    """More than any pipe takes, both ways at once."""
    own_work = OwnWork(_confiner(tmp_path), server)
    folder = str(tmp_path)
    (tmp_path / "scratch").mkdir()
    text = os.urandom(1 << 20)
    work = Work(
        argv=["/bin/sh", "-c", "tee /dev/stderr"],
        folder=folder,
        writable=[],
        confinement=Confinement(),
    )
    done = own_work.run(work, text)
    assert (done.stdout, done.stderr, done.code) == (text, text, 0)


def test_a_thread_that_began_it_may_end(runner: ProcessRunner, tmp_path: Path, long: str) -> None:
    folder = tmp_path / "here"
    first = threading.Thread(target=lambda: runner.run(shell("true", folder)))
    first.start()
    with runner.started(shell(f"sleep {long}", folder), runner.limits(20)) as running:
        first.join()
        time.sleep(0.1)
        running.suspend()
        assert living_with(long)


def test_if_it_is_killed_its_commands_end_and_the_next_one_has_another(
    runner: ProcessRunner, tmp_path: Path, long: str
) -> None:
    folder = tmp_path / "here"
    number = server_of(runner, folder)
    command = shell(f"setsid sleep {long} & sleep {long}", folder)
    with runner.started(command, runner.limits(20)) as running:
        while len(living_with(long)) < 2:
            time.sleep(0.01)
        os.kill(number, signal.SIGKILL)
        assert all_gone(long)
        report = running.end()
        assert report is not None
        assert report.code == -signal.SIGKILL
    assert runner.run(shell("echo again", folder)).output == "again\n"
    assert server_of(runner, folder) != number


@pytest.mark.parametrize("instead", [("/bin/false",), ("/bin/sh", "-c", "read x")])
def test_without_a_server_commands_are_started_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instead: tuple[str, ...]
) -> None:
    """It does not start, or is not heard of."""
    place = "cleveragents.infrastructure.processes.forking.fork_server"
    monkeypatch.setattr(f"{place}._ARGV", instead)
    monkeypatch.setattr(f"{place}._PATIENCE_SECONDS", 0.2)
    server = ForkServer()
    runner = ProcessRunner(_confiner(tmp_path), server, 999)
    said = [runner.run(shell("echo here", tmp_path / "here")).output for _ in range(3)]
    server.close()
    assert said == ["here\n"] * 3


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("", "the process that starts commands was killed"),
        ("printf ++++ >&0; sleep 1", "the process that starts commands was killed"),
        (r"printf '\365\377\377\377' >&0; sleep 1", "no more processes"),
    ],
    ids=["it dies", "no file comes with its answer", "it cannot fork"],
)
def test_what_a_server_could_not_start_was_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, told: str
) -> None:
    """It is asked, and the command may have begun: so it is not begun again by ourselves."""
    script = f"printf + >&0; head -c 1 <&0 >&2; {answer}"
    place = "cleveragents.infrastructure.processes.forking.fork_server._ARGV"
    monkeypatch.setattr(place, ("/bin/sh", "-c", script))
    server = ForkServer()
    server.begin()
    runner = ProcessRunner(_confiner(tmp_path), server, 999)
    with pytest.raises(ToolError, match=told):
        runner.run(shell("echo 1 > begun", tmp_path / "here"))
    server.close()
    assert list((tmp_path / "here").iterdir()) == []


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from tests.unit.infrastructure.test_fork_server import ForkServer, ProcessRunner, _confiner, shell
top = Path({top!r})
server = ForkServer()
server.begin()
ProcessRunner(_confiner(top), server, 999).run(shell("setsid sleep {long} & sleep {long}", top))
"""


def test_if_we_are_killed_it_and_its_commands_end(tmp_path: Path, long: str) -> None:
    tests = str(Path(__file__).parents[3])
    script = KILLED.format(tests=tests, top=str(tmp_path), long=long)
    ours = subprocess.Popen([sys.executable, "-c", script])
    while len(living_with(long)) < 2:
        assert ours.poll() is None
        time.sleep(0.01)
    ours.kill()
    ours.wait()
    assert all_gone(long)
    assert all_gone(str(ours.pid)), "the server is told whose it is on its command line"
