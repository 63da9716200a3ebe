"""Hostile commands: they try to get out, to look at secrets, to stay, and to use everything up."""

import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.world import PlanHandle, World, action, shell, write

from cleveragents.infrastructure.confinement.machine import Machine

HERE = Machine(os.environ["PATH"])
pytestmark = pytest.mark.skipif(
    HERE.landlock < 6 or not HERE.read_only_view or not HERE.socket_filter,
    reason="this kernel cannot hold a command inside",
)

# Each is tried in the sandbox by somebody who owns all of these files.
ESCAPES = {
    "home": "echo bad > {home}/bad",
    "a file in home": "echo bad >> {home}/.bashrc",
    "the repository's git folder": "echo bad > {project}/.git/HEAD",
    "etc": "echo bad > /etc/cleveragents-was-here",
    "the store": "echo bad > {home}/.cleveragents/cleveragents.db",
    "a link": "ln -s {home} way && echo bad > way/bad",
    "dots": "echo bad > ../../../../bad",
    "beside the sandbox": "echo bad > ../bad",
    "temporary files of others": "echo bad > {top}/bad",
    "mounting": "mount -t tmpfs none {home} || mount -o remount,rw /",
    "a device": "mknod disk b 8 0",
    "a folder of one's own": "unshare -Urm sh -c 'mount -o remount,rw / && echo bad > {home}/bad'",
    "a signal": "kill -STOP {ours}",
    "the parent's environment": "tr '\\0' '\\n' < /proc/{ours}/environ | grep SECRET",
}
# The path of the project, where the sandbox stands: these do not fail, and do not reach it.
COVERED = {
    "the repository": "echo bad > {project}/bad",
    "a file of the repository": "echo bad > {project}/README.md",
    "git in the repository": "git -C {project} commit --allow-empty -m bad",
    "a link to a file": "ln -s {project}/README.md way && echo bad > way",
    "a hard link": "ln {project}/README.md way && echo bad > way",
    "deleting": "rm {project}/README.md",
    "renaming": "mv {project}/README.md {project}/away",
    "cutting off": "truncate -s 0 {project}/README.md",
    "a mode": "chmod 000 {project}/README.md",
    "a time": "touch -d 2001-01-01 {project}/README.md",
}


def told(text: str, world: World) -> str:
    return text.format(home=world.home, project=world.project.path, top=world.top, ours=os.getpid())


@pytest.mark.parametrize("way", ESCAPES)
def test_a_hostile_command_does_not_get_out(world: World, way: str) -> None:
    (world.home / ".bashrc").write_text("theirs\n")
    before = (world.home / ".bashrc").stat()
    user = world.project.fingerprint()
    agents = world.agents.having(SECRET="the password")
    path = world.write_action(action(shell(told(ESCAPES[way], world), "escape"), confinement={}))
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    answer = plan.execute()
    assert (answer.code, answer.error["code"]) == (1, "step-failed")
    assert world.project.fingerprint() == user
    after = (world.home / ".bashrc").stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert not Path("/etc/cleveragents-was-here").exists()
    assert not [*world.top.glob("bad"), *world.home.rglob("bad")]
    [call] = plan("artifacts").ok().data["artifacts"]
    assert call["error"] and "the password" not in call["error"]
    assert plan.status["error"]["recoverable"] is True


@pytest.mark.parametrize("way", COVERED)
def test_what_a_step_does_to_the_path_of_the_project_is_done_in_its_sandbox(
    world: World, way: str
) -> None:
    user = world.project.fingerprint()
    plan = world.run(shell(told(COVERED[way], world), "change"), confinement={"mode": "required"})
    assert world.project.fingerprint() == user
    plan.rollback("start").ok()
    assert world.project.fingerprint() == user


def test_a_step_does_not_rely_on_what_is_remembered_of_the_machine(world: World) -> None:
    plan = world.use(shell(f"echo bad > {world.home}/bad", "escape"))
    true = plan.status["confinement"]
    memory = world.home / ".cleveragents" / "machine.json"
    known = json.loads(memory.read_bytes())
    forged = {name: False for name in known["abilities"]} | {"landlock": 0}
    memory.write_text(json.dumps({**known, "abilities": forged}))
    assert plan.status["confinement"] != true, "the memory is what is told"

    assert plan.execute().error["code"] == "step-failed"

    assert not (world.home / "bad").exists()
    memory.unlink()
    assert plan.status["confinement"] == true


def test_what_a_step_has_found_out_puts_the_memory_right(world: World) -> None:
    plan = world.use(write("a.txt", "a"), shell("true", "harmless"))
    true = plan.status["confinement"]
    memory = world.home / ".cleveragents" / "machine.json"
    known = json.loads(memory.read_bytes())
    forged = {name: False for name in known["abilities"]} | {"landlock": 0}
    memory.write_text(json.dumps({**known, "abilities": forged}))

    assert plan.execute().ok().data["confinement"] == true
    assert json.loads(memory.read_bytes()) == known


def test_what_was_refused_is_recorded_with_what_was_tried(world: World) -> None:
    plan = world.use(shell(f"echo bad > {world.home}/bad", "escape"))
    plan.execute()
    [call] = plan("artifacts").ok().data["artifacts"]
    assert f"{world.home}/bad" in call["error"]
    assert "$TMPDIR" in world.agents.inside("plan", "errors", plan.id).out
    quiet = world.use(shell(f"echo bad > {world.home}/bad || true", "quiet"))
    quiet.execute().ok()
    [call] = quiet("artifacts").ok().data["artifacts"]
    assert f"{world.home}/bad" in call["values"]["denied"][0]


def test_a_background_process_is_gone_before_it_writes(world: World) -> None:
    """One that hides its mark, its group and its parents; in a place where it might write."""
    marker = world.beside / "survivor"
    late = f"sleep 1; touch {marker}"
    hidden = f"env -i PATH=$PATH setsid sh -c '(setsid sh -c \"{late}\" &) &'"
    plan = world.run(shell(f"{hidden}; echo done", "leave"))
    [call] = plan("artifacts").ok().data["artifacts"]
    assert call["values"]["ended_processes"] >= 1
    time.sleep(1.3)
    assert not marker.exists()


def test_secrets_stay_where_they_are_unless_the_action_names_them(world: World) -> None:
    agents = world.agents.having(API_TOKEN="hush", DEPLOY_KEY="open")
    step = shell("echo [$API_TOKEN] [$DEPLOY_KEY]; env", "look")
    path = world.write_action(action(step, confinement={"environment": ["DEPLOY_KEY"]}))
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    output = plan("artifacts").data["artifacts"][0]["output"]
    assert "[] [open]" in output
    assert "hush" not in output


def test_no_socket_can_be_made_unless_the_action_allows_the_network(world: World) -> None:
    script = (
        "import socket\n"
        "a, b = socket.socketpair()\n"
        "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):\n"
        "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n"
        "        try: socket.socket(family, kind)\n"
        "        except PermissionError: print('no', family, kind)\n"
    )
    steps = [write("probe.py", script), shell(f"{sys.executable} probe.py", "probe")]
    without, allowed = world.run(*steps), world.run(*steps, confinement={"network": True})
    outputs = [p("artifacts").data["artifacts"][1]["output"] for p in (without, allowed)]
    assert outputs[0].count("no ") == 6
    assert outputs[1] == ""


def test_work_goes_on_as_usual_inside(world: World) -> None:
    """git, temporary files, renames between folders, permissions, caches and pipes."""
    (world.project.path / "gen.py").write_text(
        "import os, tempfile, subprocess, multiprocessing.connection\n"
        "with tempfile.NamedTemporaryFile() as f: f.write(b'x')\n"
        "os.makedirs(os.path.join(os.environ['XDG_CACHE_HOME'], 'pip'))\n"
        "os.makedirs('a/b'); os.makedirs('c'); open('a/b/f', 'w').close()\n"
        "os.rename('a/b', 'c/b')\n"
        "os.chmod('c/b/f', 0o600); os.utime('c/b/f'); os.symlink('c', 'l'); os.mkfifo('pipe')\n"
        "print(subprocess.check_output(['sh', '-c', 'echo hi | cat > /dev/null; whoami']))\n"
    )
    world.project.commit("a generator")
    git = "git add -A && git commit -qm mine && git stash list && git gc -q && git log -1 --oneline"
    plan = world.run(shell("python3 gen.py && rm pipe", "python"), shell(git, "git"))
    assert (plan.sandbox / "c/b/f").exists()
    assert not [name for name in (world.agents.data_dir / "scratch").glob("step-*")]


# --- limits -------------------------------------------------------------------------------------


def run_to_a_limit(world: World, command: str, expected: str, **arguments: Any) -> PlanHandle:
    plan = world.use(shell(f"test -e {world.beside}/go || {{ {command}; }}", "wild", **arguments))
    answer = plan.execute()
    assert (answer.code, answer.error["code"]) == (1, "step-failed")
    assert expected in answer.error["message"]
    (world.beside / "go").touch()
    plan("resume").ok()
    assert plan.status["state"] == "complete"
    return plan


# Twice as many with each round, and where there can be no more it tries again instead of giving up.
# It has an end of its own, in case that nothing stops it: the machine is not ours alone.
BOMB = """
import os, time
rounds, end = 0, time.monotonic() + 20
while rounds < 9 and time.monotonic() < end:
    try: os.fork()
    except OSError: time.sleep(0.02)
    else: rounds += 1
time.sleep(max(0, end - time.monotonic()))
"""


def test_a_fork_bomb_ends(world: World) -> None:
    world.agents.environ["CLEVERAGENTS_TOOL_PROCESS_LIMIT"] = "60"
    bomb = f"{sys.executable} -c {shlex.quote(BOMB)}"
    run_to_a_limit(world, bomb, "more than 60 processes", timeout=30)


def test_endless_output_ends_and_takes_no_room(world: World) -> None:
    started = time.monotonic()
    run_to_a_limit(world, "yes", "printed more than", timeout=60)
    assert time.monotonic() - started < 30


def test_a_hung_child_ends(world: World) -> None:
    hung = "sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done'"
    run_to_a_limit(world, hung, "stopped after 0.5 seconds", timeout=0.5)


# --- what is asked for, and what is told --------------------------------------------------------


def test_status_tells_what_holds(world: World) -> None:
    plan = world.use(write("x", "1"), confinement="required")
    holds = plan.status["confinement"]
    assert (holds["mode"], holds["by"], holds["network"]) == ("required", "kernel", False)
    assert set(holds["enforced"]) == {
        *("environment", "writes", "attributes", "processes", "network")
    }
    assert holds["not_enforced"] == []
    shown = world.agents.inside("plan", "status", plan.id)
    assert "required, by kernel" in shown.out
    off = world.use(write("x", "1"), confinement="off")
    assert off.status["confinement"]["by"] == "nothing"
    warned = world.agents.inside("plan", "status", off.id)
    assert "all your rights" in warned.err + warned.out


def test_off_is_off_unless_the_settings_require_it(world: World) -> None:
    command = f"echo out > {world.top}/out"
    world.run(shell(command, "out"), confinement=False)
    assert (world.top / "out").exists()
    world.agents.environ["CLEVERAGENTS_CONFINEMENT_MODE"] = "required"
    plan = world.use(shell(command, "out"), confinement="off")
    assert plan.execute().code == 1
    assert plan.status["confinement"]["mode"] == "required"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("strict", "is not one of required, preferred, off"),
        (3, "must be text, not a number"),
        (["off"], "must be text, not a list"),
        ({"netwerk": True}, "did you mean `network`?"),
        ({"by": "docker"}, "is not one of kernel, bubblewrap"),
        ({"environment": ["A=B"]}, "is not the name of a variable"),
        ({"write": ["relative"]}, "must be an absolute path"),
        ({"write": ["/a/../etc"]}, "must be an absolute path"),
    ],
)
def test_a_wrong_confinement_is_refused_with_its_line(world: World, value: Any, said: str) -> None:
    path = world.write_action(action(write("x", "1"), confinement=value))
    answer = world.agents("plan", "use", path)
    assert (answer.code, answer.error["code"]) == (1, "action-invalid")
    assert said in answer.error["message"]


# --- bubblewrap ---------------------------------------------------------------------------------


@pytest.fixture
def stand_in(world: World) -> Path:
    """A bubblewrap that wraps nothing, but leaves a trace; the real one is not everywhere."""
    program = world.top / "bin" / "bwrap"
    program.parent.mkdir()
    trace = world.beside / "wrapped"
    skip = 'while [ "$1" != "--" ] && [ "$1" != /bin/sh ]; do shift; done'
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {trace}\n{skip}\n[ "$1" = -- ] && shift\nexec "$@"\n'
    )
    program.chmod(0o755)
    world.agents.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    return program


@pytest.mark.parametrize("network", [True, False])
def test_bubblewrap_is_used_if_it_is_asked_for(
    world: World, stand_in: Path, network: object
) -> None:
    asked = {"by": "bubblewrap", "network": network, "mode": "required"}
    plan = world.run(shell("echo in > f", "inside"), confinement=asked)
    assert plan.status["confinement"]["by"] == "bubblewrap"
    trace = (world.beside / "wrapped").read_text().splitlines()[-2:]
    assert any(f"--bind {plan.sandbox} {plan.sandbox}" in line for line in trace)
    assert any("--unshare-net" in line for line in trace) is not network
    assert stand_in.exists()


def test_without_it_the_kernel_does_or_nothing_runs(world: World, stand_in: Path) -> None:
    required = world.use(shell("true"), confinement={"by": "bubblewrap", "mode": "required"})
    stand_in.unlink()
    plan = world.run(shell("true"), confinement={"by": "bubblewrap"})
    assert plan.status["confinement"]["by"] == "kernel"
    answer = required.execute()
    assert answer.code == 1
    assert "bubblewrap is not installed" in answer.error["message"]
    assert required.status["error"]["recoverable"] is True
    assert "bubblewrap" in world.agents.inside("plan", "status", required.id).err
    path = world.write_action(
        action(shell("true"), confinement={"by": "bubblewrap", "mode": "required"})
    )
    refused = world.agents("plan", "use", path)
    assert refused.error["code"] == "action-invalid"
    assert "may not run: confinement is required" in refused.error["message"]
