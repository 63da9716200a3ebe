"""Tab: commands, options, plans, checkpoints, decisions, settings and tools, in real shells."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.agents import Agents
from tests.support.world import World, write

BASH = """
eval "$(agents completion bash)"
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_agents_completion agents
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def tab(agents: Agents, line: str) -> list[str]:
    """What bash offers at the end of this line."""
    # As bash has them: split at spaces that are not escaped, and nothing taken out.
    words = " ".join(f"'{word}'" for word in re.split(r"(?<!\\) ", line))
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH.format(words=words)],
        cwd=agents.cwd,
        env=agents.environ,
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.splitlines()


def asked(agents: Agents, shell: str, *words: str) -> str:
    """What the program answers to another shell."""
    told = {
        "_AGENTS_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(["agents", *words]),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
    }
    answer = agents.having(**told).inside()
    assert (answer.code, answer.err) == (0, ""), answer
    return answer.out


def test_bash_completes_commands_and_options(world: World) -> None:
    assert tab(world.agents, "agents plan re") == ["resume"]
    assert tab(world.agents, "agents plan rollback --dry") == ["--dry-run"]
    assert tab(world.agents, "agents --format js") == ["json"]
    assert "git.commit" in tab(world.agents, "agents tool show git.")
    assert tab(world.agents, "agents config get sandbox.checkpoint.max-a") == [
        "sandbox.checkpoint.max-age"
    ]


def test_bash_completes_plans_checkpoints_and_decisions(world: World) -> None:
    plan = world.run(write("a b.txt", "1"), write("two.txt", "2"))
    world.agents("plan", "checkpoint", "create", "--label", "it's (mine)", plan.id).ok()

    assert tab(world.agents, "agents plan status ") == ["latest", "demo-1"]
    assert tab(world.agents, "agents plan status de") == ["demo-1"]
    assert tab(world.agents, "agents plan rollback demo-1 ")[:4] == [
        "2",
        "1",
        "0",
        r"it\'s\ \(mine\)",
    ]
    assert tab(world.agents, "agents plan rollback ")[-2:] == ["latest", "demo-1"]
    assert tab(world.agents, "agents plan checkpoint diff 0 1") == ["1"]
    assert tab(world.agents, f"agents plan rollback {plan.id} it") == [r"it\'s\ \(mine\)"]
    offered = tab(world.agents, r"agents plan checkpoint show latest after\ file.write\ a")
    assert offered == [r"after\ file.write\ a\ b.txt"]
    root = plan("tree").ok().data["tree"]["id"]
    *steps, other = tab(world.agents, "agents plan explain ")
    assert steps == ["2", "1"]
    assert root.endswith(other)


def test_the_words_for_every_day_are_completed_as_the_long_ones(world: World) -> None:
    plan = world.run(write("one.txt", "1"), write("two.txt", "2"))

    assert tab(world.agents, "agents re") == ["redo", "rewind"]
    assert tab(world.agents, "agents rewind ")[:3] == ["2", "1", "0"]
    assert tab(world.agents, f"agents rewind --plan {plan.id} ")[:3] == ["2", "1", "0"]
    assert tab(world.agents, "agents diff ")[:2] == ["2", "1"]
    assert tab(world.agents, "agents undo --plan de") == ["demo-1"]
    for word in ("log", "status", "apply", "discard"):
        assert tab(world.agents, f"agents {word} ") == ["latest", "demo-1"]


def test_what_is_offered_can_be_typed(world: World) -> None:
    plan = world.run(write("a b.txt", "1"))
    (label,) = tab(world.agents, "agents plan rollback latest before")
    done = subprocess.run(
        ["bash", "-c", f"agents plan rollback --yes {plan.id} {label}"],
        cwd=world.agents.cwd,
        env=world.agents.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_and_answers_with_explanations(world: World, shell: str) -> None:
    plan = world.run(write("one.txt", "1"))
    script = world.agents.inside("--format", "plain", "completion", shell).ok().out
    assert f"_AGENTS_COMPLETE={shell}_complete" in script
    answer = asked(world.agents, shell, "plan", "status", "demo")
    assert plan.status["name"] in answer
    assert "finished" in answer  # what it is about
    if shutil.which(shell):  # the shell itself has to understand it
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_nothing_is_made_or_said_where_there_is_nothing_yet(tmp_path: Path) -> None:
    agents = Agents(tmp_path, tmp_path)
    for words in (
        "agents plan status ",
        "agents plan rollback latest ",
        "agents plan explain ",
    ):
        assert tab(agents, words) == [""]
    assert not (tmp_path / ".cleveragents").exists()


def test_a_broken_setting_keeps_nobody_from_typing(world: World) -> None:
    world.run(write("one.txt", "1"))
    config = world.agents.data_dir / "config.toml"
    config.write_text("nonsense = [")
    assert tab(world.agents, "agents plan status ") == [""]
    assert asked(world.agents, "zsh", "plan", "status", "l").strip() == ""


def test_the_same_in_this_process(world: World) -> None:
    plan = world.run(write("one.txt", "1"), write("two.txt", "2"))
    label = "before file.write two.txt"
    plan.rollback(label).ok()
    plan("resume").ok()

    assert "latest" in asked(world.agents, "zsh", "plan", "diff", "l")
    offered = asked(world.agents, "bash", "plan", "rollback", "latest", "d")
    assert r"decision\ 1:\ " in offered
    again = [group for group in plan.groups if group.label == label]
    assert len(again) == 2  # by label it could not be told which
    offered = asked(world.agents, "zsh", "plan", "rollback", "latest", "before file")
    assert label not in offered.splitlines()
    assert "file.write" in asked(world.agents, "zsh", "plan", "explain", "2")
    assert "max-age" in asked(world.agents, "zsh", "config", "get", "sandbox")
    assert "git.commit" in asked(world.agents, "zsh", "tool", "show", "git")
    for shell in ("bash", "zsh", "fish"):
        told = world.agents("completion", shell).ok().data
        assert (told["shell"], "_AGENTS_COMPLETE" in told["script"]) == (shell, True)


def test_files_are_left_to_the_shell(world: World) -> None:
    assert "file" in asked(world.agents, "fish", "plan", "use", "x")
