"""What is kept for plans is out of reach for a step: no lock, no record, no key, nobody's work."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.interrupted import ended
from tests.support.world import PlanHandle, World, action, shell, wait_for, write

REQUIRED = {"mode": "required"}
# Holds whatever lock of whichever kind it can get on all that it finds, and says on what.
GRAB = """
import fcntl, os, struct, sys, time
got = []
for top, folders, files in os.walk(sys.argv[1]):
    for name in files:
        path = os.path.join(top, name)
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
            try:
                fcntl.flock(fd, kind | fcntl.LOCK_NB)
                got.append(f"flock {path}")
                break
            except OSError:
                pass
        try:
            fcntl.fcntl(fd, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 0, 0))
            got.append(f"lock {path}")
        except OSError:
            pass
open(sys.argv[2], "w").write("\\n".join(got))
while not os.path.exists(sys.argv[3]):
    time.sleep(0.05)
"""


def used(world: World, *steps: Any, **confinement: Any) -> PlanHandle:
    held = {**REQUIRED, "write": [str(world.beside)], **confinement}
    path = world.write_action(action(*steps, confinement=held))
    return PlanHandle(world.agents, world.agents("plan", "use", path).ok().data["plan_id"])


def output(plan: PlanHandle) -> str:
    return plan("artifacts").ok().data["artifacts"][-1]["output"]


@pytest.mark.parametrize("by", ["kernel", "kernel, allowed to write the home"])
def test_a_step_holds_no_lock_that_keeps_others_from_working(world: World, by: str) -> None:
    other = world.run(write("a", "1"))
    told, gate = world.beside / "told", world.beside / "gate"
    more = {"write": [str(world.beside), str(world.home)]} if "allowed" in by else {}
    command = f"{sys.executable} grab.py {world.agents.data_dir} {told} {gate}"
    grabbing = used(world, write("grab.py", GRAB), shell(command, "grab"), **more)
    process = world.agents.start("--format", "json", "plan", "execute", grabbing.id)
    try:
        wait_for(told.exists)
        own = str(Path(grabbing.sandbox).parent)
        # To read the user's own objects, which the sandbox borrows, harms nobody's plans.
        lent = f"{world.agents.data_dir}/scratch/view-"
        lines = told.read_text().splitlines()
        others = [line for line in lines if own not in line and lent not in line]
        assert others == []
        # Everybody else goes on as if nothing were.
        other.rollback("start").ok()
        other.execute().ok()
        world.run(write("b", "1"))
    finally:
        gate.touch()
        answer = ended(process)
    assert answer.code == 0, answer


def test_a_step_sees_of_the_data_folder_only_what_is_its_own(world: World) -> None:
    secret = world.run(write("secret.txt", "hush"))
    data = world.agents.data_dir
    (data / "config.toml").write_text('[actor.llm]\napi-key = "sk-hush"\n')
    plan = used(world, shell(f"find {data} -type f -o -type d | sort; grep -r hush {data} || true"))
    plan.execute().ok()

    seen = output(plan)

    assert "hush" not in seen
    assert secret.id not in seen
    own = str(plan.sandbox.parent)
    for line in filter(None, seen.splitlines()):
        shown = Path(line)
        temporary = (f"{data}/scratch/step-", f"{data}/scratch/view-")
        allowed = line.startswith((own, *temporary))
        assert allowed or shown in Path(own, "x").parents or shown == data / "scratch", line
    assert f"{own}/code/README.md" in seen


@pytest.mark.parametrize("name", ["sandboxes", "snapshots", "locks", "", "config.toml"])
def test_an_action_cannot_name_the_data_folder_as_a_place_to_write(world: World, name: str) -> None:
    world.run(write("a", "1"))
    data = world.agents.data_dir
    (data / "config.toml").write_text("")
    before = sorted(str(path) for path in data.rglob("*") if "scratch" not in str(path))
    place = data / name
    step = shell(f"ls -A {data}/sandboxes; echo bad > {place}/bad; echo bad >> {place}; true")
    plan = used(world, step, write=[str(place)])
    own = set(sorted(str(path) for path in data.rglob(f"*{plan.id}*")))
    plan.execute().ok()
    after = {str(path) for path in data.rglob("*") if "scratch" not in str(path)} - own
    new = {path for path in after - set(before) if plan.id not in path and ".db" not in path}
    assert new == set()
    assert (data / "config.toml").read_text() == ""
    assert set(output(plan).split()) & set(other_plans(world, plan)) == set()


def other_plans(world: World, plan: PlanHandle) -> list[str]:
    listed = world.agents("plan", "list").ok().data["plans"]
    return [row["plan_id"] for row in listed if row["plan_id"] != plan.id]


def test_a_database_elsewhere_is_out_of_reach_too(world: World) -> None:
    file = world.top / "elsewhere" / "my.db"
    agents = world.agents.having(CLEVERAGENTS_DATABASE_URL=f"sqlite:///{file}")
    command = f"wc -c < {file}; wc -c < {file}-wal; wc -c < {file}-shm; ls {file.parent}"
    path = world.write_action(action(shell(command, "look"), confinement=REQUIRED))
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    assert output(plan).split()[:3] == ["0", "0", "0"]
    assert file.stat().st_size > 0


def test_several_sandboxes_and_child_plans_work_as_ever(world: World) -> None:
    pages = world.top / "pages"
    pages.mkdir()
    both = {
        "code": {"type": "git-checkout", "path": "."},
        "docs": {"type": "fs-directory", "path": str(pages)},
    }
    mix = shell("echo x > $CLEVERAGENTS_SANDBOX_DOCS/p; git add -A; git commit -qm m; git log -2")
    child = {"name": "c", "steps": [shell("git log -1 && echo y > y && git commit -qam z; true")]}
    plan = world.run(
        mix,
        {"name": "split", "subplans": {"plans": [child]}},
        shell("cat y; echo $TMPDIR > $TMPDIR/a; mktemp", "look"),
        resources=both,
        confinement=REQUIRED,
    )
    assert (plan.sandbox / "y").read_text() == "y\n"
    plan.rollback("start").ok()
    plan.execute().ok()
    plan("apply", "--yes").ok()
    assert (pages / "p").read_text() == "x\n"


def test_one_who_is_stopped_leaves_nothing_hidden_for_us(world: World) -> None:
    """The view is the step's own: outside of it nothing is covered, whatever happens to it."""
    reached = world.beside / "reached"
    plan = used(world, shell(f"touch {reached}; sleep 60", "wait"))
    process = world.agents.start("plan", "execute", plan.id)
    wait_for(reached.exists)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (world.agents.data_dir / "cleveragents.db").exists()
    plan("resume", "--dry-run").ok()
    assert json.dumps(plan.status["sandboxes"])
