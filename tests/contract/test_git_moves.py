"""An apply to a checkout goes back and comes again by its parts; each of them may be repeated, and
one that fails leaves everything as it was."""

import shutil
from pathlib import Path

import pytest
from git_world import Project, World, world
from msgspec.structs import replace
from test_git_submodules import ALLOW, add, with_submodules

from cleveragents.domain.applied import ApplySide
from cleveragents.domain.apply import PreparedApply
from cleveragents.domain.errors import ApplyConflictError, ApplyEditsKeptError, ApplyRefusedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.apply.switch import CheckoutSwitch
from cleveragents.infrastructure.sandbox.git.command import Git

__all__ = ["world"]

BRANCH = "plans/one"


class Moves:
    """One resource to which a plan was applied, and its ways."""

    def __init__(self, world: World, resource: PlanResource, **options) -> None:
        self.registry = world.registry
        prepared = world.prepare(resource, **options)
        self.registry.carry_out(resource, prepared)
        self.resource = replace(resource, intent=prepared.token)
        self.settle(prepared)

    def prepare(self, side: ApplySide) -> PreparedApply:
        return self.registry.prepare_move(self.resource, self._way, side)

    def settle(self, prepared: PreparedApply) -> None:
        way = self.registry.way_of(self.resource, prepared)
        assert way is not None
        self._way = way
        self.registry.settle(self.resource, prepared)

    def go(self, side: ApplySide) -> PreparedApply:
        prepared = self.prepare(side)
        self.registry.carry_out(self.resource, prepared)
        self.settle(prepared)
        return prepared

    def back_and_forth(self, project: Project, side: ApplySide) -> None:
        """Carried out twice and taken back twice: nothing of the user's is another."""
        before, prepared = _facts(project), self.prepare(side)
        for _ in range(2):
            self.registry.carry_out(self.resource, prepared)
        assert _facts(project) != before
        for _ in range(2):
            assert self.registry.revert(self.resource, prepared) == ()
        self.registry.withdraw(self.resource, prepared)
        assert _facts(project) == before

    def blocked(self, side: ApplySide = ApplySide.BEFORE) -> str:
        with pytest.raises(ApplyConflictError) as caught:
            self.prepare(side)
        return f"{caught.value.files} {caught.value.why}"


def _facts(project: Project) -> dict[str, object]:
    return {key: value for key, value in project.everything().items() if key != "reflog"}


def _moves(world: World, **options) -> tuple[Project, Moves]:
    project = world.project(a__py="a\n", b__py="b\n")
    resource, sandbox = world.sandbox(project)
    sandbox.write("a.py", "plan\n")
    sandbox.write("new/file", "new\n")
    return project, Moves(world, resource, **options)


@pytest.mark.parametrize("options", [{}, {"commit": False}, {"branch": BRANCH}])
def test_either_way_can_be_repeated_and_taken_back(world: World, options) -> None:
    project, moves = _moves(world, **options)
    moves.back_and_forth(project, ApplySide.BEFORE)
    back = moves.go(ApplySide.BEFORE)
    moves.back_and_forth(project, ApplySide.AFTER)
    moves.registry.finish(moves.resource, back)
    assert project.read("a.py") == "a\n"


def test_what_is_finished_on_either_side_keeps_nothing(world: World) -> None:
    project, moves = _moves(world)
    moves.go(ApplySide.BEFORE)
    again = moves.go(ApplySide.AFTER)
    assert moves.registry.kept_bytes(moves.resource) > 0
    moves.registry.finish(moves.resource, again)
    assert moves.registry.kept_bytes(moves.resource) == 0
    assert project.read("a.py") == "plan\n"


def test_an_apply_of_nothing_goes_nowhere(world: World) -> None:
    project = world.project()
    resource, _ = world.sandbox(project)
    moves = Moves(world, resource)
    before = _facts(project)
    prepared = moves.go(ApplySide.BEFORE)
    assert (prepared.target, prepared.diff.files) == ("nothing to bring", ())
    assert _facts(project) == before


# --- a branch that nobody has checked out ---------------------------------------------------------


def test_a_branch_that_moved_meanwhile_is_left_alone(world: World) -> None:
    project, moves = _moves(world, branch=BRANCH)
    prepared = moves.prepare(ApplySide.BEFORE)
    project.git("branch", "-f", BRANCH, "main")
    with pytest.raises(ApplyEditsKeptError) as caught:
        moves.registry.carry_out(moves.resource, prepared)
    assert caught.value.files == (f"the branch {BRANCH}",)
    assert moves.registry.revert(moves.resource, prepared) == (f"the branch {BRANCH}",)
    assert project.git("rev-parse", BRANCH) == project.head


def test_a_branch_that_moves_at_the_last_instant_is_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, moves = _moves(world, branch=BRANCH)
    before, prepared = _facts(project), moves.prepare(ApplySide.BEFORE)
    real = Git.run

    def refuse(self: Git, *args: str, **options):
        if args[0] == "update-ref" and f"refs/heads/{BRANCH}" in args:
            args = ("update-ref", f"refs/heads/{BRANCH}", "0" * 40, "1" * 40)
        return real(self, *args, **options)

    monkeypatch.setattr(Git, "run", refuse)
    with pytest.raises(ApplyRefusedError, match=f"{BRANCH} in .* has moved meanwhile"):
        moves.registry.carry_out(moves.resource, prepared)
    assert _facts(project) == before


def test_a_branch_that_is_gone_or_there_by_now_is_in_the_way(world: World) -> None:
    project, moves = _moves(world, branch=BRANCH)
    commit = project.git("rev-parse", BRANCH)
    project.git("branch", "-D", BRANCH)
    assert "it is gone" in moves.blocked()
    project.git("branch", BRANCH, commit)
    moves.go(ApplySide.BEFORE)
    project.git("branch", BRANCH, "main")
    assert "there is one by now" in moves.blocked(ApplySide.AFTER)


def test_a_folder_that_became_a_file_since_is_in_the_way(world: World) -> None:
    project, moves = _moves(world)
    project.commit("more", new__file="")
    (project.path / "new/file").unlink()
    (project.path / "new").rmdir()
    project.commit("a file now", new="file\n")
    assert "new" in moves.blocked()
    project.git("reset", "-q", "--hard", "HEAD^")
    (project.path / "a.py").unlink()
    project.write("a.py/below", "a folder now\n")
    project.commit("a folder now")
    assert "'a.py/below'" in moves.blocked()


# --- submodules -----------------------------------------------------------------------------------


def _inner(world: World) -> tuple[Project, Project, PlanResource]:
    """A plan has committed in a submodule and in the one inside of that."""
    project, lib, _ = with_submodules(world)
    resource, sandbox = world.sandbox(project)
    for path in ("deps/lib/inner", "deps/lib", "."):
        Project(sandbox.path / path).commit("plan", a__py=f"plan {path}\n")
    return project, lib, resource


def _all(project: Project, lib: Project) -> list[object]:
    inner = Project(lib.path / "inner")
    return [_facts(one) for one in (project, lib, inner)]


def _switched(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """The checkout at `path` refuses to change."""
    real = CheckoutSwitch.run

    def refuse(self: CheckoutSwitch) -> None:
        real(self)
        if Path(self._git.directory) == path:
            raise ApplyRefusedError("no more", "wait")

    monkeypatch.setattr(CheckoutSwitch, "run", refuse)


@pytest.mark.parametrize("place", ["deps/lib/inner", "deps/lib", "."])
def test_a_way_that_fails_anywhere_leaves_all_as_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    project, lib, resource = _inner(world)
    moves = Moves(world, resource)
    before, prepared = _all(project, lib), moves.prepare(ApplySide.BEFORE)
    with monkeypatch.context() as patched:
        _switched(patched, project.path / place)
        with pytest.raises(ApplyRefusedError, match="no more"):
            moves.registry.carry_out(moves.resource, prepared)
    moves.registry.withdraw(moves.resource, prepared)
    assert _all(project, lib) == before
    moves.registry.carry_out(moves.resource, prepared)
    assert _all(project, lib) != before


@pytest.mark.parametrize("typed", [False, True])
def test_an_apply_that_fails_after_its_submodules_takes_them_back(
    world: World, monkeypatch: pytest.MonkeyPatch, *, typed: bool
) -> None:
    project, lib, resource = _inner(world)
    before, prepared = _all(project, lib), world.prepare(resource)
    real = CheckoutSwitch.run

    def refuse(self: CheckoutSwitch) -> None:
        if Path(self._git.directory) == project.path:
            if typed:
                lib.write("a.py", "typed\n")
            raise ApplyRefusedError("no more", "wait")
        real(self)

    monkeypatch.setattr(CheckoutSwitch, "run", refuse)
    with pytest.raises(ApplyEditsKeptError if typed else ApplyRefusedError) as caught:
        world.registry.carry_out(resource, prepared)
    if typed:
        assert isinstance(caught.value, ApplyEditsKeptError)
        assert caught.value.files == ("deps/lib/a.py",)
        assert lib.read("a.py") == "typed\n"
        lib.write("a.py", "one\ntwo\nthree\n")
    assert (project.head, lib.head) == (resource.base, project.git("rev-parse", "HEAD:deps/lib"))
    world.registry.finish(resource, prepared)
    assert typed or _all(project, lib) == before


def test_a_submodule_that_moved_since_the_preview_is_a_conflict(world: World) -> None:
    project, lib, _ = with_submodules(world)
    resource, sandbox = world.sandbox(project)
    Project(sandbox.path / "deps/lib").write("a.py", "not committed\n")
    prepared = world.prepare(resource)
    lib.commit("mine")
    before = _all(project, lib)
    with pytest.raises(ApplyConflictError, match="the submodule is not where it was"):
        world.registry.carry_out(resource, prepared)
    assert _all(project, lib) == before


def test_a_submodule_that_went_since_the_preview_is_named(world: World) -> None:
    project, lib, resource = _inner(world)
    prepared = world.prepare(resource)
    (lib.path / "inner/.git").rename(world.root / "aside")
    with pytest.raises(ApplyEditsKeptError, match="the submodule is not where it was") as caught:
        world.registry.carry_out(resource, prepared)
    assert caught.value.files == ("the submodule deps/lib/inner, which is gone",)
    assert (project.read("a.py"), lib.read("a.py")) == ("one\ntwo\nthree\n",) * 2


def test_a_submodule_whose_commit_others_have_is_in_the_way(world: World) -> None:
    project, lib, resource = _inner(world)
    lib.git("checkout", "-q", "-B", "main")
    moves = Moves(world, resource)
    assert project.status() == ""
    lib.git("branch", "mine")
    assert "others have its commit" in moves.blocked()


def test_a_submodule_that_is_not_there_any_more_is_in_the_way(world: World) -> None:
    _, lib, resource = _inner(world)
    moves = Moves(world, resource)
    prepared = moves.prepare(ApplySide.BEFORE)
    (lib.path / "inner/.git").rename(world.root / "aside")
    assert "moved on since then" in moves.blocked()
    moves.registry.withdraw(moves.resource, prepared)


def test_a_new_submodule_comes_back_if_the_way_back_fails(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, project = world.project("library"), world.project("project")
    resource, sandbox = world.sandbox(project)
    add(sandbox, library, "more/it")
    sandbox.git(*ALLOW, "commit", "-qm", "a submodule")
    moves = Moves(world, resource)
    made = project.git_dir / "modules/more/it"
    assert made.is_dir()
    prepared = moves.prepare(ApplySide.BEFORE)
    moves.registry.carry_out(moves.resource, prepared)
    assert not made.exists()
    assert moves.registry.revert(moves.resource, prepared) == ()
    assert made.is_dir()
    moves.registry.carry_out(moves.resource, prepared)
    moves.settle(prepared)
    again = moves.prepare(ApplySide.AFTER)
    moves.registry.carry_out(moves.resource, again)
    assert made.is_dir()
    assert moves.registry.revert(moves.resource, again) == ()
    assert not made.exists()


def test_a_new_submodule_whose_folder_was_removed_goes_all_the_same(world: World) -> None:
    library, project = world.project("library"), world.project("project")
    resource, sandbox = world.sandbox(project)
    add(sandbox, library, "more/it")
    sandbox.git(*ALLOW, "commit", "-qm", "a submodule")
    before = project.head
    moves = Moves(world, resource)
    shutil.rmtree(project.path / "more", ignore_errors=True)
    moves.go(ApplySide.BEFORE)
    assert (project.head, project.status()) == (before, "")
    assert not (project.git_dir / "modules/more/it").exists()


def test_files_in_a_submodule_go_back_without_a_commit_of_it(world: World) -> None:
    project, lib, _ = with_submodules(world)
    resource, sandbox = world.sandbox(project)
    Project(sandbox.path / "deps/lib").write("a.py", "not committed\n")
    before = lib.head
    moves = Moves(world, resource, commit=False)
    assert lib.read("a.py") == "not committed\n"
    moves.go(ApplySide.BEFORE)
    assert (lib.read("a.py"), lib.head) == ("one\ntwo\nthree\n", before)
