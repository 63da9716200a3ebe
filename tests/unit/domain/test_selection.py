"""Single files are named by path, by `resource:path`, or by a resource; nothing is guessed."""

import pytest
from domain_builders import PLAN, ulid

from cleveragents.domain.errors import PathOutsideSandboxError, UsageError
from cleveragents.domain.ids import ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY, GIT_CHECKOUT, SQLITE, ResourceType
from cleveragents.domain.selection import Selection, select


def a_resource(name: str, type_: ResourceType = GIT_CHECKOUT.type) -> PlanResource:
    return PlanResource(
        resource_id=ResourceId(ulid(1)),
        plan_id=PLAN,
        name=name,
        type=type_,
        location=f"/{name}",
        base="base",
        sandbox_path=f"/sandboxes/{name}",
    )


CODE, DOCS = a_resource("code"), a_resource("docs", FS_DIRECTORY.type)
DB = a_resource("db", SQLITE.type)


@pytest.mark.parametrize(
    ("text", "resources", "expected"),
    [
        ("src/a.py", [CODE], {"code": ("src/a.py",)}),
        ("./src//a.py/", [CODE], {"code": ("src/a.py",)}),
        ("code:src/a.py", [CODE], {"code": ("src/a.py",)}),
        ("code", [CODE], {"code": ("code",)}),
        ("code:", [CODE], {"code": ()}),
        (".", [CODE], {"code": ()}),
        ("odd:name", [CODE], {"code": ("odd:name",)}),
        ("code:odd:name", [CODE], {"code": ("odd:name",)}),
        ("code:docs:x", [CODE, DOCS], {"code": ("docs:x",)}),
        ("docs:x", [CODE, DOCS], {"docs": ("x",)}),
        ("docs", [CODE, DOCS], {"docs": ()}),
        ("db", [CODE, DB], {"db": ()}),
        ("db:app.db", [CODE, DB], {"db": ()}),
        ("src/a.py", [CODE, DB], {"code": ("src/a.py",)}),
        ("db", [DB], {"db": ()}),
    ],
)
def test_what_is_meant(
    text: str, resources: list[PlanResource], expected: dict[str, tuple[str, ...]]
) -> None:
    assert select([text], resources).paths == expected


@pytest.mark.parametrize("resources", [[CODE, DOCS], [CODE, DOCS, DB]])
def test_a_path_that_may_be_in_several_resources_is_refused_with_the_choices(
    resources: list[PlanResource],
) -> None:
    with pytest.raises(UsageError, match="which resource") as caught:
        select(["a.txt"], resources)
    assert "code:a.txt or docs:a.txt" in caught.value.hint


def test_a_plan_without_sandboxes_has_no_files_to_name() -> None:
    with pytest.raises(UsageError) as caught:
        select(["a.txt"], [])
    assert caught.value.hint == "run the plan first: it has no sandboxes yet"


@pytest.mark.parametrize("text", ["../a", "code:src/../../a", "/etc/passwd", "code:/etc"])
def test_paths_out_of_the_sandbox_are_refused(text: str) -> None:
    with pytest.raises(PathOutsideSandboxError) as caught:
        select([text], [CODE, DOCS] if ":" in text else [CODE])
    path = text.removeprefix("code:")
    told = f"{path!r} is outside the sandbox: --only takes paths of the sandbox"
    assert caught.value.message == told


def test_several_are_gathered_once_each_and_all_of_a_resource_takes_its_paths_along() -> None:
    chosen = select(["code:a", "code:a", "code:b", "docs:x", "docs:"], [CODE, DOCS])

    assert chosen.paths == {"code": ("a", "b"), "docs": ()}
    assert chosen.names == ("code:a", "code:b", "docs:")
    assert select(chosen.names, [CODE, DOCS]) == chosen


def test_a_folder_means_everything_below_it() -> None:
    chosen = Selection(paths={"code": ("src", "odd\udcff")})

    assert chosen.has("code", "src")
    assert chosen.has("code", "src/a.py")
    assert chosen.has("code", "odd\\xff/x")
    assert not chosen.has("code", "srcs")
    assert not chosen.has("docs", "src")
    assert Selection(paths={"docs": ()}).has("docs", "anything")
