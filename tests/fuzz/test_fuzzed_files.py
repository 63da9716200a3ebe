"""Whatever is in an action file, a step file or a config: it is taken whole and carried out, or
refused whole, with an answer of the promised shape; where it is refused, nothing has changed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.fuzzing import FUZZ, TEXT, as_yaml, garbled, spoiled
from tests.support.proper import AT_REST, everything, is_proper
from tests.support.world import PlanHandle, World

TRUE = {"tool": "shell", "with": {"resource": "code", "command": "true"}}
FILE = {"resource": "code", "path": "a", "content": "1"}
GOOD_ACTION = {
    "name": "demo",
    "description": "Change the project",
    "resources": {
        "code": {"type": "git-checkout", "path": ".", "include": [".env"], "exclude": ["target/"]},
        "assets": {"type": "fs-directory", "path": "../beside"},
    },
    "rollback_policy": {"enabled": True, "require_checkpoints": True, "max_checkpoints": 9},
    "tools": {
        "make": {
            "command": ["make", "{target}"],
            "resource": "code",
            "writes": True,
            "write_scope": ["code"],
            "idempotent": False,
            "timeout": 60,
        }
    },
    "confinement": {"write": ["/tmp"]},
    "steps": [
        {"name": "w", "tool": "file.write", "with": FILE},
        {"name": "s", "uses": ["w"], **TRUE},
        {"name": "m", "tool": "make", "with": {"target": "all"}},
        {
            "name": "both",
            "subplans": {
                "parallel": True,
                "merge_strategy": "git_three_way",
                "plans": [{"name": "en", "steps": [TRUE]}],
            },
        },
    ],
}
GOOD_CONFIG = {
    "format": "json",
    "sandbox.cleanup": "auto",
    "sandbox.checkpoint.auto-create-on": ["on_error", "before_apply"],
    "sandbox.checkpoint.max-checkpoints-per-plan": 12,
    "sandbox.checkpoint.max-age": "30d",
    "tool.timeout": 60,
    "store.max-size": "20GB",
    "actor.llm.max-retries": 3,
}

# --- action files -------------------------------------------------------------------------------


@FUZZ
@given(garbled(spoiled(GOOD_ACTION).map(as_yaml)) | garbled(st.just(as_yaml(GOOD_ACTION))))
def test_an_action_file_is_taken_whole_or_refused_whole(world: World, content: bytes) -> None:
    file = world.top / "fuzz.yaml"
    file.write_bytes(content)
    before, plans = everything(world), world.plan_count()
    answer = world.agents("plan", "use", str(file))
    is_proper(answer)
    if answer.code:
        assert everything(world) == before
    else:
        assert world.plan_count() == plans + 1


# Where it works and what it may touch stay: a machine is not copied, nor opened, for a test.
KEPT = {"resources": {"code": {"type": "git-checkout", "path": "."}}}
WORK: dict[str, Any] = {
    "name": "demo",
    "description": "Change the project",
    "rollback_policy": {"require_checkpoints": True, "max_checkpoints": 9},
    "max_retries_per_step": 1,
    "tools": {
        "make": {"command": ["touch", "{target}"], "writes": True, "timeout": 5},
        "look": {"command": ["ls", "a"], "validation": "informational"},
    },
    "steps": [
        {"name": "w", "tool": "file.write", "with": {"path": "a", "content": "1"}},
        {"name": "s", "tool": "shell", "uses": ["w"], "with": {"command": "true"}},
        {"name": "m", "tool": "make", "with": {"target": "all"}},
        {
            "name": "both",
            "subplans": {
                "parallel": True,
                "plans": [
                    {"name": "en", "steps": [{"tool": "shell", "with": {"command": "echo > e"}}]},
                    {"name": "de", "steps": [{"tool": "shell", "with": {"command": "echo > d"}}]},
                ],
            },
        },
    ],
}
BRIEF = {"CLEVERAGENTS_TOOL_TIMEOUT": "5", "CLEVERAGENTS_TOOL_PROCESS_LIMIT": "50"}
PATHS = st.sampled_from(["a", "README.md", "docs", ".", ".git/config", "new/deep/file"]) | TEXT
WRITTEN = st.sampled_from(["1\n", "é", "x" * 5000]) | TEXT
SPOKEN = st.sampled_from(["true", "false", "echo 1 > a", "rm -rf docs", "exit 77", "ln -s / b"])
CALLS = {
    "file.write": {"path": PATHS, "content": WRITTEN},
    "file.read": {"path": PATHS},
    "file.edit": {"path": PATHS, "old": WRITTEN, "new": WRITTEN},
    "file.delete": {"path": PATHS},
    "file.move": {"path": PATHS, "to": PATHS},
    "file.list": {"path": PATHS},
    "file.search": {"pattern": TEXT | st.sampled_from(["(a+)+$", "[", "\\", "."])},
    "shell": {"command": SPOKEN | TEXT},
}
STEPS = st.sampled_from(list(CALLS)).flatmap(
    lambda tool: st.fixed_dictionaries(
        {"tool": st.just(tool), "with": st.fixed_dictionaries(CALLS[tool])},
        optional={"name": st.sampled_from(["x", "y"]) | TEXT},
    )
)
ACTIONS = st.lists(STEPS, min_size=1, max_size=4).map(lambda steps: {**WORK, "steps": steps})


def test_what_is_spoiled_was_good_before(world: World) -> None:
    (world.project.path / ".env").write_text("A=1\n")
    file = world.top / "good.yaml"
    file.write_bytes(as_yaml(GOOD_ACTION))
    world.agents("plan", "use", str(file)).ok()
    file.write_bytes(as_yaml({**WORK, **KEPT}))
    made = world.agents("plan", "use", str(file)).ok().data["plan_id"]
    PlanHandle(world.agents, made).execute().ok()


@FUZZ
@given((spoiled(WORK) | ACTIONS).map(lambda work: {**work, **KEPT}))
def test_an_action_that_is_taken_is_carried_out_or_fails_in_order(
    world: World, content: dict[str, Any]
) -> None:
    file = world.top / "fuzz.yaml"
    file.write_bytes(as_yaml(content))
    agents = world.agents.having(**BRIEF)
    used = agents("plan", "use", str(file))
    is_proper(used)
    if used.code:
        return
    made = PlanHandle(agents, used.data["plan_id"])
    answer = made.execute()
    is_proper(answer)
    assert made.status["state"] == ("errored" if answer.code else "complete")
    for words in (["diff"], ["tree"], ["errors"], ["artifacts"]):
        is_proper(made(*words))
    is_proper(made.rollback("start"))
    assert made.status["state"] in AT_REST


STEP = {"name": "again", "tool": "file.write", "with": {**FILE, "content": "2"}, "uses": []}


@FUZZ
@given(content=garbled(spoiled(STEP).map(as_yaml)), mode=st.sampled_from(["revert", "append"]))
def test_a_step_file_is_taken_or_changes_nothing(
    world: World, plan: PlanHandle, content: bytes, mode: str
) -> None:
    file = world.top / "step.yaml"
    file.write_bytes(content)
    advice = ("--mode", mode, "--guidance", "again", "--step-file", str(file))
    decision = plan.group("decision 1: one").decision_id
    before = everything(world)
    dry = ["--dry-run"] if mode == "revert" else ["--no-execute"]
    answer = world.agents("plan", "correct", *advice, *dry, decision)
    is_proper(answer)
    if answer.code or mode == "revert":
        assert everything(world) == before


# --- config -------------------------------------------------------------------------------------

TABLES = spoiled(GOOD_CONFIG).map(
    lambda data: "".join(f"{key} = {_toml(value)}\n" for key, value in data.items()).encode(
        "utf-8", "surrogatepass"
    )
)


def _toml(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return repr(value)


@FUZZ
@given(content=garbled(TABLES), project=st.booleans())
def test_a_config_file_is_obeyed_or_refused(world: World, content: bytes, *, project: bool) -> None:
    folder = world.project.path / ".cleveragents" if project else world.agents.data_dir
    folder.mkdir(exist_ok=True)
    file = folder / "config.toml"
    file.write_bytes(content)
    try:
        before = everything(world)
        for words in (("config", "list"), ("plan", "list"), ("config", "get", "tool.timeout")):
            is_proper(world.agents(*words))
        assert everything(world) == before
    finally:
        file.unlink()
        if project:
            folder.rmdir()
