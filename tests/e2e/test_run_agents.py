"""`agents run` with coding agents that follow their own hook protocols: a group for each call."""

import json
import os
from pathlib import Path

import pytest
from tests.support.agents import Answer
from tests.support.stand_ins.installed import install
from tests.support.world import PlanHandle, World

AGENTS = ("claude", "codex", "gemini", "opencode", "aider")
WRITTEN = "written by write tool, key a\n"
# Their own names for what they do; git tells of a commit only what it changed.
FIRST = {
    "claude": "Write file_a.txt",
    "codex": "apply_patch file_a.txt",
    "gemini": "write_file file_a.txt",
    "opencode": "write file_a.txt",
    "aider": "file_a.txt",
}
SHELL = 'echo "shell key a" >> shell_a.txt'
SECOND = {
    "claude": f"Bash {SHELL}",
    "codex": f"Bash {SHELL}",
    "gemini": "run_shell_command ",
    "opencode": f"bash {SHELL}",
    "aider": "shell_a.txt",
}


def run(world: World, name: str, *words: str, **environ: str) -> Answer:
    folder = install(world.top / "bin", name)
    path = os.pathsep.join([str(folder), world.agents.environ["PATH"]])
    agents = world.agents.having(PATH=path, **environ)
    return agents.process("--format", "json", "run", "--", name, *words)


def plan_of(world: World, done: Answer) -> PlanHandle:
    return PlanHandle(world.agents, done.ok().data["plan_id"])


def steps_of(plan: PlanHandle) -> list[str]:
    return [item["step"] for item in plan.status["progress"]]


@pytest.mark.parametrize("name", AGENTS)
def test_each_call_of_an_agent_has_a_group_to_go_back_to(world: World, name: str) -> None:
    plan = plan_of(world, run(world, name))
    steps = steps_of(plan)

    assert steps[0] == FIRST[name]
    assert steps[1].startswith(SECOND[name])
    plan.rollback("1").ok()
    assert (plan.sandbox / "file_a.txt").read_text() == WRITTEN
    assert not (plan.sandbox / "shell_a.txt").exists()
    plan.rollback("0").ok()
    assert not (plan.sandbox / "file_a.txt").exists()


@pytest.mark.parametrize("name", AGENTS)
def test_nothing_is_written_into_the_users_own_settings(world: World, name: str) -> None:
    run(world, name).ok()

    ours = world.home / ".cleveragents"
    files = [path for path in world.home.rglob("*") if path.is_file() and ours not in path.parents]
    assert [path.name for path in files] == [".gitconfig"]


@pytest.mark.parametrize("name", AGENTS)
def test_what_an_agent_is_allowed_is_said_in_one_line(world: World, name: str) -> None:
    done = run(world, name, ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k", GEMINI_API_KEY="k")

    line = next(line for line in done.ok().err.splitlines() if line.startswith(f"agents: {name}-1"))
    assert f"steps told by {name}" in line
    assert "allowed: the network, " in line
    assert "_API_KEY" in line
    assert "writing ~/." in line


def test_what_only_reads_makes_no_step(world: World) -> None:
    assert not [step for step in steps_of(plan_of(world, run(world, "claude"))) if "Read" in step]


def test_what_a_subagent_of_claude_does_is_a_step_of_its_own(world: World) -> None:
    assert steps_of(plan_of(world, run(world, "claude", "-p", "subagent"))) == [
        "Write by_subagent.txt"
    ]


def test_a_call_of_claude_that_failed_is_on_record_with_its_error(world: World) -> None:
    plan = plan_of(world, run(world, "claude"))

    assert steps_of(plan)[-1] == "Bash false"
    assert "exit status 1" in plan("artifacts").ok().out


def test_claude_started_again_goes_on_with_the_session_that_we_had_named(world: World) -> None:
    broken = run(world, "claude", "-p", "break")
    assert broken.data["exit_code"] == 3
    written = PlanHandle(world.agents, broken.data["plan_id"]).sandbox / "broken.txt"
    how, name = written.read_text().split()
    assert how == "started"

    path = os.pathsep.join([str(world.top / "bin"), world.agents.environ["PATH"]])
    world.agents.having(PATH=path).process("plan", "resume")

    assert written.read_text().split() == ["resumed", name]


def test_settings_that_a_person_gives_claude_are_kept(world: World) -> None:
    mine = world.top / "mine.json"
    hook = {"hooks": [{"type": "command", "command": "cat > mine.txt"}]}
    mine.write_text(json.dumps({"model": "m", "hooks": {"PreToolUse": [hook]}}))

    plan = plan_of(world, run(world, "claude", "--settings", str(mine)))

    assert (plan.sandbox / "mine.txt").exists()
    assert FIRST["claude"] in steps_of(plan)


def test_gemini_has_the_users_settings_and_credentials_and_leaves_them_alone(world: World) -> None:
    own = world.home / ".gemini"
    own.mkdir()
    (own / "settings.json").write_text('{"theme": "mine"}')
    (own / "oauth_creds.json").write_text("{}")
    trusted = {str(world.project.path): "TRUST_FOLDER"}
    (own / "trustedFolders.json").write_text(json.dumps(trusted))

    done = run(world, "gemini").ok()

    assert "theme mine signed in True" in done.err
    assert "trusted TRUST_FOLDER" in done.err
    assert (own / "settings.json").read_text() == '{"theme": "mine"}'
    assert sorted(path.name for path in own.iterdir()) == [
        "oauth_creds.json",
        "settings.json",
        "trustedFolders.json",
    ]


def test_gemini_trusts_no_sandbox_of_a_project_that_it_does_not_trust(world: World) -> None:
    assert "trusted None" in run(world, "gemini").ok().err


def test_opencode_keeps_what_a_person_has_set_for_it(world: World) -> None:
    mine = json.dumps({"share": "disabled", "plugin": ["mine"]})

    assert "share disabled" in run(world, "opencode", OPENCODE_CONFIG_CONTENT=mine).ok().err


def test_hooks_of_the_repository_are_called_although_ours_are_in_their_place(
    world: World,
) -> None:
    folder = install(world.top / "bin", "aider")
    script = (
        'mkdir -p "$(git rev-parse --git-common-dir)/hooks";'
        'h="$(git rev-parse --git-common-dir)/hooks/post-commit";'
        'printf "#!/bin/sh\\necho called >> called.txt\\n" > "$h"; chmod +x "$h";'
        f"exec {folder}/aider"
    )
    done = world.agents.process(
        "--format", "json", "run", "--agent", "aider", "--", "sh", "-c", script
    )

    assert (plan_of(world, done).sandbox / "called.txt").read_text() == "called\ncalled\n"


def test_an_agent_that_ignores_its_hooks_is_watched(world: World) -> None:
    folder = world.top / "bin"
    folder.mkdir()
    (folder / "claude").write_text("#!/bin/sh\necho 1 > a.txt; sleep 5; echo 2 > b.txt\n")
    (folder / "claude").chmod(0o755)
    path = os.pathsep.join([str(folder), world.agents.environ["PATH"]])
    done = world.agents.having(PATH=path).process("--format", "json", "run", "--", "claude")

    assert steps_of(plan_of(world, done)) == ["a.txt", "b.txt"]


def test_codex_that_does_not_answer_is_watched(world: World) -> None:
    folder = world.top / "bin"
    folder.mkdir()
    program = '#!/bin/sh\ncase "$*" in *app-server*) exit 1;; esac\necho 1 > a.txt\n'
    (folder / "codex").write_text(program)
    (folder / "codex").chmod(0o755)
    path = os.pathsep.join([str(folder), world.agents.environ["PATH"]])
    done = world.agents.having(PATH=path).process("--format", "json", "run", "--", "codex")

    assert steps_of(plan_of(world, done)) == ["a.txt"]


def test_a_task_goes_to_the_agent_that_is_configured(world: World) -> None:
    install(world.top / "bin", "claude")
    path = os.pathsep.join([str(Path(world.top / "bin")), world.agents.environ["PATH"]])
    agents = world.agents.having(PATH=path)
    agents("config", "set", "run.agent", "claude").ok()

    done = agents.process("--format", "json", "run", "write the file")

    assert done.ok().data["name"] == "claude-1"
    assert "write the file" in agents.process("plan", "tree").ok().out
