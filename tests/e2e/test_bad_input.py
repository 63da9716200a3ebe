"""Bad repositories and action files: a clear error, and nothing half-created."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.agents import Agents
from tests.support.projects import Project
from tests.support.refusals import nothing_was_created, refused
from tests.support.world import PlanHandle, World, action, shell, write

# --- repositories -------------------------------------------------------------------------------


def _no_repository(world: World) -> tuple[Path, str]:
    folder = world.top / "plain folder"
    folder.mkdir()
    return folder, "git init"


def _bare(world: World) -> tuple[Path, str]:
    folder = world.top / "bare.git"
    world.project.git("clone", "-q", "--bare", ".", str(folder))
    return folder, "git clone"


def _unborn(world: World) -> tuple[Path, str]:
    folder = world.top / "unborn"
    world.project.git("init", "-q", str(folder))
    return folder, "git commit"


def _missing(world: World) -> tuple[Path, str]:
    return world.top / "nowhere", "path"


def _file(world: World) -> tuple[Path, str]:
    return world.project.path / "README.md", "path"


def _below(world: World) -> tuple[Path, str]:
    return world.project.path / "src", str(world.project.path)


def _inside_git(world: World) -> tuple[Path, str]:
    return world.project.path / ".git", str(world.project.path)


def _broken_head(world: World) -> tuple[Path, str]:
    folder = world.top / "broken"
    shutil.copytree(world.project.path, folder, symlinks=True)
    (folder / ".git" / "HEAD").write_text("nonsense\n")
    return folder, "git"


REPOSITORIES = [
    _no_repository,
    _bare,
    _unborn,
    _missing,
    _file,
    _below,
    _inside_git,
    _broken_head,
]


@pytest.mark.parametrize("make", REPOSITORIES)
def test_what_is_no_usable_repository_is_refused_with_what_to_do(
    world: World, make: Callable[[World], tuple[Path, str]]
) -> None:
    folder, advice = make(world)
    path = world.write_action(action(write("a", "1")))
    answer = world.agents("plan", "use", path, "--resource", f"code={folder}")
    said = refused(answer, "resource-unusable")
    assert str(folder) in said
    assert advice in said
    nothing_was_created(world)


def test_a_detached_head_is_told_and_apply_asks_for_a_branch(world: World) -> None:
    world.project.git("checkout", "-q", "--detach")
    path = world.write_action(action(write("a.txt", "1\n")))
    used = world.agents("plan", "use", path).ok()
    assert any("detached" in text for text in used.envelope["messages"])
    plan = PlanHandle(world.agents, used.data["plan_id"])
    plan.execute().ok()
    before = world.project.fingerprint()
    said = refused(plan("apply", "--yes"), "apply-refused")
    assert f"agents plan apply {plan.id} --branch NAME" in said
    assert world.project.fingerprint() == before
    plan("apply", "--yes", "--branch", "result").ok()
    assert world.project.git("show", "result:a.txt") == "1"


@pytest.mark.parametrize("name", ["with spaces", "ünïcödé ☃", "new\nline", "-dash", "quo'te\"$x"])
def test_a_project_may_lie_at_any_path(world: World, name: str) -> None:
    folder = world.top / name
    world.project.path.rename(folder)
    project = Project(folder, world.agents.environ)
    agents = world.agents.at(folder)
    before = project.fingerprint()
    path = world.write_action(
        action(shell("echo x > f; echo 2 > src/app.py", "s"), write("g", "1"))
    )
    used = agents("plan", "use", path).ok()
    plan = PlanHandle(agents, used.data["plan_id"])
    plan.execute().ok()
    plan.rollback("start").ok()
    plan("resume").ok()
    assert project.fingerprint() == before
    plan("apply", "--yes").ok()
    assert project.read("src/app.py") == "2\n"
    assert project.git("status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["with spaces", "ünïcödé ☃", "new\nline"])
def test_the_home_may_lie_at_any_path(world: World, name: str) -> None:
    home = world.top / name
    world.home.rename(home)
    agents = Agents(home, world.project.path)
    path = world.write_action(action(shell("echo x > f", "s")))
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    plan.rollback("start").ok()
    assert not (plan.sandbox / "f").exists()
    plan("resume").ok()
    plan("apply", "--yes").ok()
    assert world.project.read("f") == "x\n"


def test_files_with_any_name_survive_checkpoint_rollback_and_apply(world: World) -> None:
    names = ["sp ace", "ünï", "-dash", "new\nline", 'quo"te', "back\\slash", "\x07bell"]
    commands = ["; ".join(f"echo {i} > './{name}'" for i, name in enumerate(names))]
    plan = world.run(shell(commands[0], "names"))
    full = plan.tree()
    assert full == world.replay(commands)[-1]
    plan.rollback("start").ok()
    plan("resume").ok()
    assert plan.tree() == full
    plan("apply", "--yes").ok()
    for index, name in enumerate(names):
        assert world.project.read(name) == f"{index}\n"


def test_a_file_name_that_is_no_utf8_survives_too(world: World) -> None:
    plan = world.run(shell("printf x > \"$(printf 'b\\377d')\"", "bytes"))
    full = plan.tree()
    assert b"b\xffd" in full
    data = plan.rollback("start").ok().data
    assert len(data["changes_reverted"]) == 1
    plan("resume").ok()
    assert plan.tree() == full
    for words in (("diff",), ("artifacts",)):
        for format in ("json", "yaml", "plain", "rich"):
            assert world.agents.inside("plan", *words, plan.id, "--format", format).code == 0


# --- action files -------------------------------------------------------------------------------

BOMB = (
    "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
    )
    + "name: bomb\ndescription: d\n"
)
GOOD = """\
name: demo
description: d
resources:
  code: {type: git-checkout, path: .}
steps:
  - {name: s, tool: shell, with: {command: "true"}}
"""
CHILD = '{name: a, steps: [{tool: shell, with: {command: "true"}}]}'
CIRCLE = ", ".join(
    CHILD.replace("name: a", f"name: {one}, depends_on: [{other}]") for one, other in ("ab", "ba")
)
TWO = GOOD.replace("path: .}", "path: .}\n  other: {type: git-checkout, path: .}")
GIVEN = CHILD.replace("name: a", "name: a, resources: [other]").replace(
    "{command", "{resource: code, command"
)


def spawning(subplans: str, text: str = GOOD) -> str:
    return text.partition("steps:")[0] + f"steps:\n  - subplans: {subplans}\n"


TEXTS = {
    "children in a circle": (spawning(f"{{plans: [{CIRCLE}]}}"), "form a circle"),
    "no child at once": (spawning(f"{{max_parallel: 0, plans: [{CHILD}]}}"), "at least 1"),
    "too many at once": (spawning(f"{{max_parallel: 51, plans: [{CHILD}]}}"), "at most 50"),
    "a child that takes what it was not given": (
        spawning(f"{{plans: [{GIVEN}]}}", TWO),
        "this child was not given `code`",
    ),
    "a list": ("- 1\n- 2\n", "mapping"),
    "a scalar": ("just words\n", "mapping"),
    "nothing": ("", ""),
    "only a comment": ("# nothing\n", ""),
    "a bomb": (BOMB, ""),
    "a deep nest": ("a: " + "[" * 3000 + "]" * 3000, ""),
    "an endless alias": ("a: &a [*a]\n", ""),
    "an object": ("name: !!python/object/apply:os.system ['true']\n", "line 1"),
    "a tab": ("name:\n\t- x\n", "line 2"),
    "two documents": (GOOD + "---\n" + GOOD, ""),
    "a key twice": (GOOD + "name: again\n", "line 7"),
    "a null byte": ("name: \0\n", "line 1"),
    "an unknown key": (GOOD + "stpes: []\n", "did you mean `steps`"),
    "an unknown tool": (GOOD.replace("shell", "shel"), "did you mean `shell`"),
    "an unknown argument": (GOOD.replace("command:", "comand:"), "did you mean `command`"),
    "an unknown resource": (
        GOOD.replace("command:", "resource: cod, command:"),
        "did you mean `code`",
    ),
    "no steps": (GOOD.partition("steps:")[0], "steps"),
    "an unknown type": (GOOD.replace("git-checkout", "git-chekout"), "did you mean `git-checkout`"),
    "a wrong policy": (GOOD + "rollback_policy: {enabld: true}\n", "did you mean `enabled`"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_bad_action_file_is_refused_whole(world: World, text: str) -> None:
    content, expected = TEXTS[text]
    path = world.top / "bad.yaml"
    path.write_text(content)
    started = time.process_time()  # not by the clock: the machine may be busy
    said = refused(world.agents("plan", "use", str(path)), "action-invalid")
    assert time.process_time() - started < 5
    assert expected in said
    assert f"agents action check {path}" in said
    nothing_was_created(world)


def test_a_mistake_is_told_with_its_line_and_key(world: World) -> None:
    path = world.top / "bad.yaml"
    path.write_text(GOOD.replace("tool: shell", "tool: 7"))
    said = refused(world.agents("plan", "use", str(path)), "action-invalid")
    assert "line 6" in said
    assert "steps[0].tool" in said


@pytest.mark.parametrize("content", [b"\xff\xfe\x00binary", b"x" * (1024 * 1024 + 1)])
def test_a_file_that_is_no_text_or_far_too_large_is_refused(world: World, content: bytes) -> None:
    path = world.top / "bad.yaml"
    path.write_bytes(content)
    refused(world.agents("plan", "use", str(path)), "action-invalid")
    nothing_was_created(world)


@pytest.mark.parametrize("name", ["missing.yaml", ".", "", "\udcff.yaml", "/dev/null/x"])
def test_an_action_file_that_cannot_be_read_is_told(world: World, name: str) -> None:
    refused(world.agents("plan", "use", name), "action-not-found")
    nothing_was_created(world)


@pytest.mark.parametrize("words", [("plan", "use"), ("action", "check")])
def test_a_type_that_is_not_implemented_yet_is_refused_with_the_truth(
    world: World, words: tuple[str, str]
) -> None:
    resources = {"code": {"type": "postgres", "url": "postgresql://x/y"}}
    path = world.write_action(action(shell("true"), resources=resources))
    said = refused(world.agents(*words, path), "action-invalid")
    assert "postgres is not implemented yet; what works: git-checkout, fs-directory, sqlite" in said
    nothing_was_created(world)


def test_an_unknown_resource_on_the_line_is_refused(world: World) -> None:
    path = world.write_action(action(shell("true")))
    said = refused(world.agents("plan", "use", path, "--resource", "cod=."), "action-invalid")
    assert "did you mean `code`" in said
