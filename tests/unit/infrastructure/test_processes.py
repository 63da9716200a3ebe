"""Commands: limited in time and output, alone in their group, and gone when they are done."""

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.living import living_with
from tests.support.runners import in_folder, runner_with

from cleveragents.domain.confinement import Confinement, ConfinementMode
from cleveragents.domain.errors import ToolError, ToolTimeoutError
from cleveragents.domain.resource import SandboxAddress
from cleveragents.infrastructure.clock import UlidSource
from cleveragents.infrastructure.processes.runner import Command
from cleveragents.infrastructure.processes.starting import signals_held_back

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run_shell(
        script: str,
        *,
        timeout: float = 20,
        limit: int = 10_000,
        environ: Mapping[str, str] | None = None,
        sandboxes: Mapping[str, SandboxAddress] | None = None,
    ) -> Any:
        runner = runner_with({"PATH": os.environ["PATH"], **(environ or {})}, limit)
        return runner.run(
            Command(
                name="shell",
                argv=["/bin/sh", "-c", script],
                folder=str(tmp_path),
                sandboxes=sandboxes or {"here": in_folder(tmp_path)},
                timeout=timeout,
            )
        )

    return run_shell


@pytest.fixture
def long() -> str:
    """A time to sleep that no other test has: so its sleepers are found."""
    return f"60.{uuid.uuid4().int % 10**12}"


# --- results ------------------------------------------------------------------------------------


def test_both_outputs_come_back_in_their_order(run: Run) -> None:
    result = run("echo one; echo two >&2; echo three")

    assert result.output == "one\ntwo\nthree\n"
    assert result.values == {"exit_code": 0}


def test_it_runs_in_its_folder_without_input(run: Run, tmp_path: Path) -> None:
    assert run("pwd; cat").output == f"{tmp_path}\n"


def test_another_exit_code_is_an_error_with_the_last_words(run: Run) -> None:
    with pytest.raises(ToolError) as caught:
        run("echo one; echo two; echo; echo three; echo four; exit 3")

    assert caught.value.message == "shell ended with exit code 3: two | three | four"
    with pytest.raises(ToolError, match="exit code 7$"):
        run("exit 7")


def test_a_command_that_was_killed_is_an_error(run: Run) -> None:
    with pytest.raises(ToolError, match="exit code -9"):
        run("kill -9 $$")


@pytest.mark.parametrize(
    "argv", [["/no/such/program"], ["/bin/echo", "a\0b"], ["/bin/echo", "\ud800"], ["/"]]
)
def test_what_cannot_be_started_is_an_error(tmp_path: Path, argv: list[str]) -> None:
    command = Command(name="own", argv=argv, folder=str(tmp_path), sandboxes={}, timeout=5)

    with pytest.raises(ToolError, match="could not be started") as caught:
        runner_with({}, 100).run(command)
    assert argv[0] in caught.value.message


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    command = Command(
        name="own", argv=["/bin/true"], folder=str(tmp_path / "gone"), sandboxes={}, timeout=5
    )

    with pytest.raises(ToolError, match="its folder .*gone"):
        runner_with({}, 100).run(command)


# --- output -------------------------------------------------------------------------------------


def test_of_too_much_output_the_end_is_kept(run: Run) -> None:
    everything = "".join(f"{number}\n" for number in range(1, 1001))

    output = run("seq 1 1000", limit=20).output

    assert output == f"[{len(everything) - 20} bytes left out]\n{everything[-20:]}"


def test_output_up_to_the_limit_is_whole(run: Run) -> None:
    assert run("printf 1234567890", limit=10).output == "1234567890"


def test_bytes_that_are_not_text_come_in_a_form_that_can_be_stored(run: Run) -> None:
    output = run(r"printf 'a\377b\000'").output

    assert output == "a\\xffb\0"
    run("printf 'ü%.0s' 1 2 3", limit=3).output.encode()


# --- time ---------------------------------------------------------------------------------------


def test_a_command_that_takes_too_long_is_stopped_with_everything_it_started(
    run: Run, long: str
) -> None:
    with pytest.raises(ToolTimeoutError) as caught:
        run(f"sleep {long} & sleep {long}", timeout=0.3)

    assert "0.3 seconds" in caught.value.message
    assert living_with(long) == []


def test_whoever_ignores_the_polite_signal_is_killed(
    run: Run, long: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cleveragents.infrastructure.processes.first_process.GRACE_SECONDS", 0.1)

    with pytest.raises(ToolTimeoutError):
        run(f"trap '' TERM; sleep {long} & while :; do sleep 0.05; done", timeout=0.3)

    assert living_with(long) == []


def test_a_polite_signal_leaves_time_to_clean_up(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ToolTimeoutError):
        run("trap 'echo bye > cleaned; exit' TERM; sleep 60 & wait", timeout=0.3)

    assert (tmp_path / "cleaned").read_text() == "bye\n"


# --- what is left behind ------------------------------------------------------------------------


def test_a_process_left_in_the_background_neither_blocks_nor_survives(run: Run, long: str) -> None:
    started = time.monotonic()

    result = run(f"(trap '' TERM HUP; sleep {long}; sleep {long}) &")

    assert result.output == ""
    assert result.values["ended_processes"] >= 1
    assert time.monotonic() - started < 10
    assert living_with(long) == []


def test_a_failed_command_leaves_nothing_behind_either(run: Run, long: str) -> None:
    with pytest.raises(ToolError):
        run(f"sleep {long} & exit 1")

    assert living_with(long) == []


def test_an_interruption_ends_the_command_too(run: Run, long: str) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(f"sleep {long}; true")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert living_with(long) == []


def test_an_interruption_waits_for_the_end_of_the_block_whichever_thread_takes_it() -> None:
    """Where a command is started, what is not yet known would not be ended."""
    done, reached = threading.Event(), False
    other = threading.Thread(target=done.wait)
    other.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), signals_held_back():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            reached = True
    finally:
        signal.signal(signal.SIGINT, before)
        done.set()
        other.join()
    assert reached


def test_a_process_in_a_session_of_its_own_does_not_survive_either(run: Run, long: str) -> None:
    script = f"setsid sh -c 'touch there; exec sleep {long}' & while [ ! -e there ]; do :; done"
    try:
        run(script)
        assert living_with(long) == []
    finally:
        for process in living_with(long):
            os.kill(process, signal.SIGKILL)


# --- environment --------------------------------------------------------------------------------


def test_settings_that_lead_git_elsewhere_are_not_passed_on(run: Run, tmp_path: Path) -> None:
    environ = {"GIT_DIR": "/x", "GIT_WORK_TREE": "/y", "GIT_INDEX_FILE": "/z", "HOME": "/h"}

    lines = run("env", environ=environ).output.splitlines()

    assert [line for line in lines if line.startswith("GIT_")] == [
        f"GIT_CEILING_DIRECTORIES={tmp_path.parent}"
    ]
    assert "HOME=/h" in lines


def test_git_does_not_look_for_a_repository_above_a_sandbox(run: Run, tmp_path: Path) -> None:
    sandbox = tmp_path / "sandboxes" / "code"
    (sandbox / "below").mkdir(parents=True)
    script = "git init -q; cd sandboxes/code/below; git rev-parse --git-dir || echo none"

    assert run(script, sandboxes={"code": in_folder(sandbox)}).output.endswith("none\n")


def test_every_sandbox_is_named_in_the_environment(run: Run) -> None:
    sandboxes = {"code": in_folder("/s/code"), "my-docs": in_folder("/s/docs")}
    lines = run("env", sandboxes=sandboxes).output.splitlines()

    assert "CLEVERAGENTS_SANDBOX_CODE=/s/code" in lines
    assert "CLEVERAGENTS_SANDBOX_MY_DOCS=/s/docs" in lines


def test_nothing_of_our_own_process_leaks_into_the_command(run: Run) -> None:
    os.environ["LEAK_FOR_TEST"] = "1"
    try:
        assert "LEAK_FOR_TEST" not in run("env").output
    finally:
        del os.environ["LEAK_FOR_TEST"]


# --- stopped ------------------------------------------------------------------------------------


def test_a_plan_that_was_stopped_runs_nothing_more_until_it_may(tmp_path: Path) -> None:
    runner, plan_id = runner_with({"PATH": os.environ["PATH"]}, 100), UlidSource().new()
    command = Command(
        name="own",
        argv=["/bin/sh", "-c", "echo in"],
        folder=str(tmp_path),
        sandboxes={},
        timeout=5,
        plan_id=plan_id,
    )
    runner.stop(plan_id)
    with pytest.raises(KeyboardInterrupt):
        runner.run(command)
    runner.allow(plan_id)
    assert runner.run(command).output == "in\n"


def test_one_that_closes_its_output_is_waited_for(run: Run) -> None:
    assert run("echo said; exec >&- 2>&-; sleep 0.3").output == "said\n"


def test_who_kills_the_keeper_is_still_ended(tmp_path: Path) -> None:
    """Only where it is let: without confinement."""
    marker, off = tmp_path / "late", Confinement(mode=ConfinementMode.OFF)
    command = Command(
        name="own",
        argv=["/bin/sh", "-c", f"(sleep 1; touch {marker}) & kill -9 $PPID; sleep 5"],
        folder=str(tmp_path),
        sandboxes={},
        timeout=5,
        plan_id=UlidSource().new(),
        confinement=off,
    )
    with pytest.raises(ToolError, match="killed from outside"):
        runner_with({"PATH": os.environ["PATH"]}, 100).run(command)
    time.sleep(1.2)
    assert not marker.exists()
