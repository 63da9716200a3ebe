"""What is hard to capture, and a set-up that is hard to work in, through the real command."""

import os
import shlex
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.refusals import refused
from tests.support.rights import Restrained, stopped_by_modes, without_namespaces
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, action, shell, wait_for, write

NOBODY = 65534

# --- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_cannot_be_read_is_named_and_the_step_fails(world: World, kind: str) -> None:
    """What is the plan's own can be: see `test_closed_files.py`. This is somebody else's."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    ready, go = world.beside / "ready", world.beside / "go"
    wait = f"mkdir -p in; touch '{ready}'; until test -e '{go}'; do sleep 0.02; done"
    plan = world.use(write("a.txt", "a\n"), shell(wait, "hide"))
    strange = plan.sandbox / "in" / "strange"

    def plant() -> None:
        wait_for(ready.exists)
        strange.mkdir() if kind == "folder" else strange.touch()
        strange.chmod(0o700)
        os.chown(strange, NOBODY, NOBODY)
        go.touch()

    with ThreadPoolExecutor(1) as beside:
        planted = beside.submit(plant)
        weak = Restrained(world.agents, stopped_by_modes())
        said = refused(weak("plan", "execute", plan.id), "snapshot-failed")
        planted.result()
    assert repr("in/strange") in said
    assert "exclude" in said
    _only_the_first_step_is_kept(plan)
    os.chown(strange, 0, 0)
    plan("resume").ok()
    assert plan.status["state"] == "complete"


def test_a_database_that_cannot_be_read_is_named_and_the_step_fails(world: World) -> None:
    database = world.top / "app.db"
    subprocess.run(["sqlite3", str(database), "CREATE TABLE t (a)"], check=True)
    resources = {
        "code": {"type": "git-checkout", "path": "."},
        "db": {"type": "sqlite", "path": str(database)},
    }
    plan = world.use(
        write("a.txt", "a\n"),
        shell('chmod 000 "$CLEVERAGENTS_SANDBOX_DB"', "hide"),
        resources=resources,
    )
    # Where there is one, a helper in a user namespace opens it.
    weak = Restrained(world.agents, without_namespaces())
    said = refused(weak("plan", "execute", plan.id), "snapshot-failed")
    assert "app.db" in said
    assert "make the file readable" in said
    _only_the_first_step_is_kept(plan)


def _only_the_first_step_is_kept(plan: PlanHandle) -> None:
    status = plan.status
    assert (status["state"], status["last_completed_step"]) == ("errored", 0)
    assert "cannot be" in status["error"]["message"]
    listed = {group.group_id for group in plan.groups}
    assert set(plan("checkpoint", "verify").ok().data["verified"]) == listed


def test_a_file_that_keeps_growing_is_named_and_there_is_no_checkpoint(world: World) -> None:
    plan = world.run(write("a.txt", "a\n"))
    groups = [group.group_id for group in plan.groups]
    # Large enough that a writer always comes between the first byte and the last.
    (plan.sandbox / "growing").write_bytes(bytes(48 << 20))
    writer = ["/bin/sh", "-c", "while :; do echo x >> growing; done"]
    with subprocess.Popen(writer, cwd=plan.sandbox) as process:
        try:
            answer = plan("checkpoint", "create", "{}", "--label", "busy")
        finally:
            process.kill()
    said = refused(answer, "snapshot-failed")
    assert "'growing' keeps changing" in said
    assert [group.group_id for group in plan.groups] == groups
    plan("checkpoint", "create", "{}", "--label", "still").ok()
    plan("checkpoint", "verify").ok()


def test_pipes_sockets_and_devices_are_told_and_left_in_place(world: World) -> None:
    sock = "import socket; socket.socket(socket.AF_UNIX).bind('sock')"
    make = f"mkfifo pipe; python3 -c {shlex.quote(sock)}"
    names = ["pipe", "sock"]
    if os.geteuid() == 0:
        make += "; mknod null c 1 3"
        names = ["null", *names]
    steps = (write("a.txt", "a\n"), shell(make, "special"), shell("rm a.txt", "more"))
    plan = world.run(*steps, confinement="off")  # which lets nobody make sockets or devices
    group = plan.group("after shell more").group_id
    shown = world.agents("plan", "checkpoint", "show", plan.id, group).ok().data
    row = next(row for row in shown["checkpoints"] if row["checkpoint_type"] == "git-checkout")
    assert row["metadata"]["skipped"] == names
    plan.rollback("after file.write a.txt").ok()
    assert (plan.sandbox / "a.txt").read_text() == "a\n"
    assert stat.S_ISFIFO((plan.sandbox / "pipe").lstat().st_mode)


@pytest.mark.parametrize("name", [".gitattributes", "src/.gitignore", ".gitmodules"])
def test_a_pipe_that_git_would_wait_at_is_named_and_can_be_removed(world: World, name: str) -> None:
    plan = world.run(shell(f"rm -f {name}; mkfifo {name}; echo more >> README.md", "pipe"))
    pipe = plan.sandbox / name
    for command in (("diff",), ("apply", "{}", "--yes")):
        said = refused(plan(*command), "sandbox-failed")
        assert str(pipe) in said
    pipe.unlink()
    plan("diff").ok()
    plan("apply", "{}", "--yes").ok()
    assert world.project.read("README.md").endswith("more\n")


# --- a hostile set-up -----------------------------------------------------------------------------

GIT = "git -c user.name=a -c user.email=a@x -c commit.gpgsign=false -c core.hooksPath=/dev/null"
WORK = {
    "edit": "printf 'one\\r\\n' > src/app.py; chmod 0600 README.md; mkdir empty-too",
    "commit": f"echo new > new; {GIT} add -A; {GIT} commit -qm mine; rm src/old.py",
    "reset": f"{GIT} reset -q --hard HEAD~1; echo after > after",
    "nested": "git init -q inner; echo x > inner/x; mv docs other; ln -sfn other link",
    "detached": f"{GIT} switch -q --detach; echo t > t; {GIT} add t; {GIT} commit -qm t",
}


def _hostile(world: World) -> Path:
    """Gives back a file that names the commands which ran a hook, once there is any."""
    ran, hooks = world.beside / "ran", world.top / "hooks"
    who = "tr '\\0' ' ' < /proc/$PPID/cmdline"
    hooks.mkdir()
    for name in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change"):
        for place in (hooks, world.project.git_dir / "hooks"):
            place.mkdir(exist_ok=True)
            (place / name).write_text(f"#!/bin/sh\n{who} >> '{ran}'\nexit 1\n")
            (place / name).chmod(0o755)
    (world.home / ".gitconfig").write_text(
        "[user]\n\tuseConfigOnly = true\n[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n"
        f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {hooks}/post-checkout\n"
        "[submodule]\n\trecurse = true\n[gc]\n\tauto = 1\n"
    )
    (world.project.git_dir / "index.lock").write_bytes(b"the user's own")
    return ran


def test_a_plan_goes_there_and_back_in_a_hostile_set_up(world: World) -> None:
    quiet = World(world.top / "quiet", world)
    expected = quiet.replay(list(WORK.values()))
    ran = _hostile(world)
    agents = world.agents.having(
        GIT_DIR="/nowhere", GIT_INDEX_FILE="/nowhere/index", GIT_WORK_TREE="/nowhere"
    )
    path = world.write_action(action(*(shell(text, name) for name, text in WORK.items())))
    user = world.project.fingerprint()
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    ran.unlink(missing_ok=True)  # by the steps themselves, whose git obeys the user's settings
    for number, name in reversed(list(enumerate(WORK))):
        # The user cleans up between checkpoint and rollback.
        for words in (("reflog", "expire", "--expire=now", "--all"), ("gc", "-q", "--prune=now")):
            hookless = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
            world.project.git(*hookless, *words)
        plan.rollback(f"after shell {name}").ok()
        assert tree_of(plan.sandbox) == expected[number + 1], name
    plan.rollback("start").ok()
    assert tree_of(plan.sandbox) == expected[0]
    plan("checkpoint", "verify").ok()
    assert world.project.fingerprint() == user
    assert not ran.exists(), ran.read_text()
