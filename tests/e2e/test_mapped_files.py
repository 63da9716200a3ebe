"""Files that a living agent writes through memory: each group holds what they held then."""

import os
import sys

import pytest
from tests.support.coding_agent import use_command
from tests.support.world import PlanHandle, World

from cleveragents.infrastructure.confinement.machine import Machine

# Calls hooks, and writes letters through a mapping in the way that its first argument says.
AGENT = """
import json, mmap, os, pathlib, subprocess, sys, threading, time

def hook(kind, name):
    tool = {"tool_name": "Write", "tool_use_id": name, "tool_input": {"file_path": name}}
    told = {"session_id": "s1", "hook_event_name": kind, **tool, "tool_response": {}}
    subprocess.run(["agents", "hook", kind], input=json.dumps(told), text=True, check=True)

def call(name, do):
    hook("pre-tool", name)
    do()
    hook("post-tool", name)

MANY = 2000
pathlib.Path("data").write_bytes(b"A" * 4096 * MANY)
area = None

def write(letter):
    area[:] = letter * 4096 * MANY
"""
ANEW = {
    "a second name": 'os.link("data", "twin")',
    "more than the queue holds": (
        '[pathlib.Path(f"many{n}").touch() or os.unlink(f"many{n}") for n in range(20000)]'
    ),
}
LATE = """
call("begin", lambda: None)
call("anew", lambda: {anew})
file = open("data", "r+b")
area = mmap.mmap(file.fileno(), 0)
for letter in (b"B", b"C", b"D"):
    call(letter.decode(), lambda: write(letter))
"""
# A process of the agent's own goes on writing while the agent waits at its hook.
BESIDE = """
if not os.fork():
    file = open("data", "r+b")
    area = mmap.mmap(file.fileno(), 0)
    pathlib.Path("begun").touch()
    count = 0
    while True:
        count += 1
        area[:8] = area[-8:] = count.to_bytes(8, "big")
while not os.path.exists("begun"):
    time.sleep(0.01)
for number in range(5):
    call(f"step {number}", lambda: pathlib.Path("f").write_text(str(number)))
"""
# The user's own file is copied up when it is opened, and is another one for whoever has it mapped.
IN_A_LAYER = """
call("begin", lambda: None)
file = open("node_modules/deep/data", "r+b")
area = mmap.mmap(file.fileno(), 0)
for letter in (b"B", b"C", b"D"):
    call(letter.decode(), lambda: write(letter))
"""


def use(world: World, work: str) -> PlanHandle:
    script = world.top / "agent.py"
    script.write_text(AGENT + work)
    return use_command(world, [sys.executable, str(script)])


@pytest.mark.parametrize("anew", ANEW)
def test_what_is_written_after_the_watcher_began_anew_is_in_the_groups(
    world: World, anew: str
) -> None:
    plan = use(world, LATE.format(anew=ANEW[anew]))
    plan.execute().ok()
    for letter in "BCD":
        plan.rollback(f"after agent.Write Write {letter}").ok()
        held = (plan.sandbox / "data").read_bytes()
        assert set(held) == {ord(letter)}, chr(held[0])


def test_no_group_holds_half_of_what_was_being_written(world: World) -> None:
    plan = use(world, BESIDE)
    plan.execute().ok()
    for number in range(5):
        plan.rollback(f"after agent.Write Write step {number}").ok()
        held = (plan.sandbox / "data").read_bytes()
        first, last = (int.from_bytes(part, "big") for part in (held[:8], held[-8:]))
        assert first - last in (0, 1)  # whichever it was about to write when it was stopped


@pytest.mark.skipif(
    not Machine(os.environ["PATH"]).read_only_view, reason="this kernel has no layers for a command"
)
def test_what_is_written_in_a_layer_is_in_the_groups(world: World) -> None:
    (world.project.path / ".gitignore").write_text("node_modules/\n")
    world.project.git("add", "-A")
    world.project.git("commit", "-qm", "ignored")
    theirs = world.project.path / "node_modules/deep/data"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"A" * 4096 * 2000)
    plan = use(world, IN_A_LAYER)
    plan.execute().ok()
    for letter in "BCD":
        plan.rollback(f"after agent.Write Write {letter}").ok()
        held = (plan.sandbox / "node_modules/deep/data").read_bytes()
        assert set(held) == {ord(letter)}, chr(held[0])
    assert set(theirs.read_bytes()) == {ord("A")}
