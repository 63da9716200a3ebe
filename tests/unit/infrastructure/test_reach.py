"""How far a call looks: built-in tools know it, own ones may say so, and that is believed."""

from pathlib import Path
from typing import Any

import pytest

from cleveragents.domain.action import (
    Action,
    Parameter,
    ResourceSpec,
    ToolSpec,
    Validation,
)
from cleveragents.domain.footprint import EVERYTHING, NO_REACH, UNKNOWN, Reach
from cleveragents.domain.resource_kinds import FS_DIRECTORY
from cleveragents.infrastructure.tools.builtin.specs import BUILT_IN
from cleveragents.infrastructure.tools.declared_reach import reach_of

ALL = (EVERYTHING,)


def resource(name: str, **keys: Any) -> ResourceSpec:
    return ResourceSpec(name=name, type=FS_DIRECTORY.type, location="/", **keys)


def action(*resources: ResourceSpec) -> Action:
    return Action(name="a", description="a", resources=resources, steps=())


CODE, DB = resource("code"), resource("db")
BOTH = action(CODE, DB)


def reach(
    tool: str | ToolSpec, where: Action = BOTH, root: Path | None = None, **given: Any
) -> Reach:
    spec = tool if isinstance(tool, ToolSpec) else next(s for s in BUILT_IN if s.name == tool)
    return reach_of(spec, given, where, {"code": str(root or "/nowhere")})


def own(*reads: str, **keys: Any) -> ToolSpec:
    return ToolSpec(
        name="own",
        command=("true",),
        resource="code",
        writes=keys.pop("writes", True),
        reads=reads,
        parameters=(Parameter(name="file"),),
        **keys,
    )


# --- built in -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tool", ["file.read", "file.edit", "file.delete", "file.list", "file.search"]
)
def test_file_tools_read_what_they_are_told(tool: str) -> None:
    found = reach(tool, resource="code", path="./src//a")

    assert found == Reach(reads={"code": ("src/a",)}, reads_hidden=False, writes_hidden=False)


def test_moving_reads_both_places() -> None:
    assert reach("file.move", resource="code", path="a", to="b").reads == {"code": ("a", "b")}


def test_writing_reads_nothing_but_has_a_target() -> None:
    found = reach("file.write", resource="code", path="a")

    assert (found.reads, found.targets) == ({}, {"code": ("a",)})
    assert not found.writes_hidden


def test_without_a_path_it_is_all_of_the_only_resource() -> None:
    assert reach("file.list", action(CODE)).reads == {"code": ALL}
    assert reach("file.search", action(CODE), pattern="x").reads == {"code": ALL}


@pytest.mark.parametrize(
    "tool", ["sql.query", "sql.execute", "git.status", "git.diff", "git.commit"]
)
def test_databases_and_repositories_are_read_whole(tool: str) -> None:
    found = reach(tool, resource="db", path="part")

    assert found == Reach(reads={"db": ALL}, reads_hidden=False, writes_hidden=False)


def test_a_request_reads_nothing_here_but_the_world_outside() -> None:
    assert reach("http.request", url="http://x") == Reach(reads={})


def test_a_shell_reads_everything() -> None:
    assert reach("shell", resource="code", command="true") == UNKNOWN


def test_every_built_in_tool_but_the_shell_says_what_it_reads() -> None:
    assert [spec.name for spec in BUILT_IN if spec.reads is None] == ["shell"]


# --- where things really are --------------------------------------------------------------------


def test_links_are_followed_and_both_names_count(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "way").symlink_to("real")

    found = reach("file.read", root=tmp_path, resource="code", path="way/x")

    assert found.reads == {"code": ("way/x", "real/x")}
    assert not found.reads_hidden


def test_a_link_that_leads_out_leads_to_what_nobody_sees(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "way").symlink_to("..")

    assert reach(own("way/x"), root=tmp_path / "in").reads_hidden


def test_what_is_excluded_or_never_captured_is_hidden() -> None:
    partly = action(resource("code", exclude=("cache/", "*.tmp")))
    never = action(resource("code", checkpointable=False))

    def hidden(where: Action, tool: str, path: str) -> tuple[bool, bool]:
        found = reach(tool, where, path=path, content="")
        return found.reads_hidden, found.writes_hidden

    assert hidden(partly, "file.read", "cache/x") == (True, False)
    assert hidden(partly, "file.write", "deep/cache/x") == (True, True)
    assert hidden(partly, "file.edit", "a.tmp") == (True, True)
    assert hidden(partly, "file.write", "cache") == (False, False), "a file of that name is none"
    assert hidden(partly, "file.read", "src/x") == (False, False)
    assert hidden(partly, "file.list", "src") == (True, False), "something in there may be"
    assert hidden(never, "file.read", "src/x") == (True, False)
    assert hidden(never, "file.write", "src/x") == (True, True)


# --- own tools ----------------------------------------------------------------------------------


def test_an_own_tool_that_says_nothing_may_read_anything() -> None:
    silent = ToolSpec(name="own", command=("true",), resource="code", writes=True)

    assert reach(silent) == UNKNOWN
    assert reach(ToolSpec(name="own", command=("true",), resource="code")).reads is None
    assert not reach(ToolSpec(name="own", command=("true",), resource="code")).writes_hidden


def test_what_an_own_tool_declares_is_believed() -> None:
    assert reach(own(writes=False)) == NO_REACH
    assert reach(own("src", "db")).reads == {"code": ("src",), "db": ALL}
    assert reach(own("./db")).reads == {"code": ("db",)}, "a path like the name of a resource"
    assert reach(own("{file}"), file="a/../b").reads == {"code": ("b",)}
    assert reach(own("{file}")).reads == {"code": ALL}, "an argument that was left out"
    assert reach(own(write_scope=("gen/", "db"))).targets == {"code": ("gen",), "db": ALL}


@pytest.mark.parametrize("given", ["/etc/passwd", "..", "../x", "", "a\0b"])
def test_an_argument_that_leads_elsewhere_proves_nothing(given: str) -> None:
    assert reach(own("{file}"), file=given).reads is None


def test_a_program_may_leave_something_where_nobody_sees_it_unless_it_only_reads() -> None:
    assert reach(own()).writes_hidden
    assert reach(own(writes=False, side_effects=("a mail",))).writes_hidden
    assert not reach(own(writes=False)).writes_hidden


def test_a_validation_judges_everything() -> None:
    assert reach(own(writes=False, validation=Validation.REQUIRED)).reads is None
