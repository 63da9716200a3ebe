"""An action hands parts of itself on: to a child, to a later step, to whoever asks by name."""

from msgspec.structs import fields, replace

from cleveragents.domain.action import (
    Action,
    ActorSpec,
    ResourceSpec,
    RollbackPolicy,
    ServerSpec,
    Step,
    Subplan,
    ToolSpec,
    Validation,
)
from cleveragents.domain.confinement import Confinement
from cleveragents.domain.resource_kinds import FS_DIRECTORY, GIT_CHECKOUT

FIRST, SECOND, THIRD = (Step(name=name, tool="file.write") for name in ("one", "two", "three"))
CODE = ResourceSpec(name="code", type=GIT_CHECKOUT.type, location="/code")
DOCS = ResourceSpec(name="docs", type=FS_DIRECTORY.type, location="/docs")
JUDGE = ToolSpec(name="judge", validation=Validation.REQUIRED)
SEARCH = ServerSpec(name="search", command=("serve",), resource="code")
WHOLE = Action(
    name="parent",
    description="Everything",
    resources=(CODE, DOCS),
    steps=(FIRST, SECOND),
    tools=(ToolSpec(name="count"), JUDGE),
    rollback_policy=RollbackPolicy(max_checkpoints=7),
    max_retries_per_step=3,
    validations=(Step(name="judge", tool="judge"),),
    confinement=Confinement(network=True),
    servers=(ServerSpec(name="other", command=("x",), resource="docs"), SEARCH),
    actor=ActorSpec(type="llm"),
    invariants=("keep it short",),
)


def child(*steps: Step, resources: tuple[str, ...] = ("docs",)) -> Subplan:
    return Subplan(name="en", description="In English", resources=resources, steps=steps)


def test_a_child_gets_its_own_steps_and_resources_and_all_else_of_its_parent_but_validations() -> (
    None
):
    part = WHOLE.for_child(child(THIRD))

    assert (part.name, part.description) == ("parent/en", "In English")
    assert (part.resources, part.steps) == ((DOCS,), (THIRD,))
    assert part.actor == ActorSpec(), "its steps are written down"
    assert part.validations == (), "those are its parent's"
    own = {"name", "description", "resources", "steps", "validations", "actor"}
    for field in fields(Action):
        if field.name not in own:
            assert getattr(part, field.name) == getattr(WHOLE, field.name), field.name


def test_a_child_without_steps_has_the_actor_of_its_parent() -> None:
    assert WHOLE.for_child(child()).actor == WHOLE.actor


def test_a_step_takes_the_place_that_it_is_given() -> None:
    assert WHOLE.with_step(0, THIRD).steps == (THIRD, SECOND)
    assert WHOLE.with_step(1, THIRD).steps == (FIRST, THIRD)
    longer = WHOLE.with_step(2, THIRD)
    assert longer.steps == (FIRST, SECOND, THIRD)
    assert longer.with_step(0, THIRD).steps == (THIRD, SECOND, THIRD)


def test_parts_are_found_by_their_names() -> None:
    assert WHOLE.server("search") == SEARCH
    assert WHOLE.resource("docs") == DOCS
    assert WHOLE.validation("judge") is Validation.REQUIRED
    assert WHOLE.validation("count") is None
    for found in (WHOLE.server("x"), WHOLE.resource("x"), WHOLE.validation("x")):
        assert found is None


def test_a_server_reads_if_none_of_its_tools_writes() -> None:
    look, note = (ToolSpec(name=n, server="search", remote=n) for n in ("look", "note"))
    assert replace(WHOLE, tools=(look, note)).reading_servers == {"search", "other"}
    writing = replace(WHOLE, tools=(look, replace(note, writes=True)))
    assert writing.reading_servers == {"other"}
