"""An action survives being stored."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleveragents.domain.action import (
    Action,
    ActorSpec,
    MergeStrategy,
    Parameter,
    ResourceSpec,
    RollbackPolicy,
    ServerSpec,
    Step,
    Subplan,
    Subplans,
    TimelineUse,
    ToolSpec,
    Validation,
)
from cleveragents.domain.confinement import Confinement, ConfinementMeans, ConfinementMode
from cleveragents.domain.resource_kinds import kinds
from cleveragents.domain.secrets import Secrets
from cleveragents.infrastructure.database.rows import to_json, typed

TEXTS = st.text(max_size=12)
NAMES = st.text(min_size=1, max_size=12)
MANY = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
RESOURCES = st.builds(
    ResourceSpec,
    name=NAMES,
    type=st.sampled_from([kind.type for kind in kinds()]),
    location=NAMES,
    include=MANY,
    exclude=MANY,
    checkpointable=st.just(value=False),
    in_place=st.just(value=True),
    secrets=st.just(Secrets.SKIP),
)
PARAMETERS = st.builds(
    Parameter,
    name=NAMES,
    type=st.just("integer"),
    required=st.just(value=False),
    description=NAMES,
)
TOOLS = st.builds(
    ToolSpec,
    name=NAMES,
    description=NAMES,
    parameters=st.lists(PARAMETERS, min_size=1, max_size=2).map(tuple),
    writes=st.just(value=True),
    checkpointable=st.just(value=False),
    write_scope=MANY,
    reads=MANY,
    side_effects=MANY,
    idempotent=st.just(value=True),
    compensate=NAMES,
    timeout=st.floats(min_value=0.1, max_value=1000),
    command=MANY,
    resource=NAMES,
    validation=st.sampled_from(Validation),
    python=NAMES,
    server=NAMES,
    remote=NAMES,
    open_ended=st.just(value=True),
    network=st.just(value=True),
)
ARGUMENTS = st.dictionaries(NAMES, JSON, min_size=1, max_size=3)
CALLS = st.builds(Step, name=NAMES, tool=NAMES, arguments=ARGUMENTS)
CHILDREN = st.builds(
    Subplan,
    name=NAMES,
    description=NAMES,
    resources=MANY,
    steps=st.lists(CALLS, min_size=1, max_size=2).map(tuple),
    depends_on=MANY,
)
STEPS = st.builds(
    Step,
    name=NAMES,
    tool=NAMES,
    arguments=ARGUMENTS,
    subplans=st.builds(
        Subplans,
        plans=st.lists(CHILDREN, min_size=1, max_size=2).map(tuple),
        parallel=st.just(value=True),
        merge_strategy=st.just(MergeStrategy.LAST_WINS),
        max_parallel=st.integers(min_value=6, max_value=50),
        fail_fast=st.just(value=True),
        max_retries=st.integers(min_value=3),
    ),
    uses=MANY,
)
FULL_ACTIONS = st.builds(
    Action,
    name=NAMES,
    description=NAMES,
    resources=st.lists(RESOURCES, min_size=1, max_size=2).map(tuple),
    steps=st.lists(STEPS, min_size=1, max_size=2).map(tuple),
    tools=st.lists(TOOLS, min_size=1, max_size=2).map(tuple),
    rollback_policy=st.builds(
        RollbackPolicy,
        enabled=st.just(value=False),
        require_checkpoints=st.just(value=False),
        max_checkpoints=st.integers(min_value=1),
    ),
    max_retries_per_step=st.integers(min_value=0),
    validations=st.tuples(CALLS),
    actor=st.builds(
        ActorSpec,
        type=NAMES.filter(lambda name: name != "scripted"),
        tools=MANY,
        max_steps=st.integers(min_value=1),
        max_tokens=st.integers(min_value=1),
        max_cost=st.floats(min_value=0.1, max_value=1000),
        options=ARGUMENTS,
    ),
    invariants=MANY,
    servers=st.tuples(st.builds(ServerSpec, name=NAMES, command=MANY, resource=NAMES)),
    confinement=st.builds(
        Confinement,
        mode=st.sampled_from(ConfinementMode),
        by=st.just(ConfinementMeans.BUBBLEWRAP),
        network=st.just(value=True),
        environment=st.tuples(st.text()),
        write=st.tuples(st.text()),
    ),
    use=st.builds(
        TimelineUse,
        use_id=NAMES,
        first_step=st.integers(min_value=1),
        script=st.lists(CALLS, min_size=1, max_size=2).map(tuple),
    ),
)


# On a loaded machine, making the values can be slow; that is no fault of theirs.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)
@given(FULL_ACTIONS)
def test_an_action_with_every_field_set_comes_back_the_same(action: Action) -> None:
    spawns = [step.subplans for step in action.steps if step.subplans]
    children = [child for spawn in spawns for child in spawn.plans]
    parts = (*action.resources, *action.tools, *action.steps, *spawns, *children)
    whole = (action, action.rollback_policy, action.actor, action.confinement)
    for value in (*whole, *parts):
        assert_nothing_is_default(value)

    assert typed(json.loads(to_json(action)), Action) == action
    for step in action.steps:
        assert typed(json.loads(to_json(step)), Step) == step


def test_an_action_with_nothing_but_what_is_required_comes_back_the_same() -> None:
    steps, tools = (Step(name="s", tool="t"),), (ToolSpec(name="t"),)
    action = Action(name="a", description="d", resources=(), steps=steps, tools=tools)

    assert typed(json.loads(to_json(action)), Action) == action


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_json_is_not_stored(number: float) -> None:
    step = Step(name="s", tool="t", arguments={"n": number})

    with pytest.raises(ValueError, match="JSON compliant"):
        to_json(step)
    with pytest.raises(ValueError, match="JSON compliant"):
        to_json(Action(name="a", description="d", resources=(), steps=(step,)))


def test_the_text_is_as_short_as_it_can_be() -> None:
    step = Step(name="s", tool="t", arguments={"n": 1})

    assert to_json(step) == '{"name":"s","tool":"t","arguments":{"n":1}}'
    action = Action(name="a", description="d", resources=(), steps=(step,))
    assert to_json(step) in to_json(action)


@pytest.mark.parametrize(
    ("part", "value", "told"),
    [
        ("name", None, r"Expected `str`, got `null` - at `\$.name`"),
        ("steps", [{"name": "s"}], r"missing required field `tool` - at `\$.steps\[0\]`"),
        ("confinement", {"mode": "a bit"}, "Invalid enum value 'a bit'"),
        ("resources", [{"name": "r", "type": "tape", "location": "/r"}], "'tape' is no type"),
    ],
)
def test_what_is_not_as_it_is_written_is_told_with_its_place(
    part: str, value: object, told: str
) -> None:
    written = json.loads(to_json(Action(name="a", description="d", resources=(), steps=())))

    with pytest.raises(msgspec.ValidationError, match=told):
        typed({**written, part: value}, Action)


def assert_nothing_is_default(value: Any) -> None:
    for field in msgspec.structs.fields(type(value)):
        assert getattr(value, field.name) != field.default, field.name
