"""Git over what a step could write: what it reaches, what comes back, what is brought over."""

import hashlib
import shutil
import stat
from pathlib import Path

import pytest
from git_world import Project, World, changed, world
from msgspec.structs import replace
from tests.support.runners import git_views

from cleveragents.domain.confinement import Confinement, ConfinementMode
from cleveragents.domain.errors import ApplyRefusedError, SandboxError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.apply.bring import Bringing
from cleveragents.infrastructure.sandbox.git.command import Git, GitError

__all__ = ["world"]

# What git-lfs does, as far as it matters here: contents by hash, where the settings say.
LFS = """#!/bin/sh
place=$(git config lfs.storage || echo "$(git rev-parse --git-common-dir)/lfs")/objects
if [ "$1" = clean ]; then
    half=$(mktemp); cat > "$half"; sum=$(sha256sum < "$half" | cut -c1-64)
    to=$place/$(echo $sum | cut -c1-2)/$(echo $sum | cut -c3-4); mkdir -p "$to" || exit 1
    printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' \\
        $sum $(wc -c < "$half")
    [ -e "$to/$sum" ] && rm "$half" || mv "$half" "$to/$sum"
else
    sum=$(sed -n 's/^oid sha256://p')
    cat "$place/$(echo $sum | cut -c1-2)/$(echo $sum | cut -c3-4)/$sum"
fi
"""


def _plan_of(world: World, project: Project) -> tuple[PlanResource, Project]:
    resource, sandbox = world.sandbox(project)
    required = Confinement(mode=ConfinementMode.REQUIRED)
    return replace(resource, confinement=required), sandbox


def _contents(place: Path) -> list[str]:
    return sorted(path.name for path in place.rglob("*") if path.is_file())


@pytest.fixture(params=["an imitation", "git-lfs itself"])
def lfs(world: World, request: pytest.FixtureRequest) -> Project:
    project = world.project()
    command = "git-lfs"
    if request.param == "an imitation":
        program = world.root / "lfs"
        program.write_text(LFS)
        program.chmod(0o755)
        command = f"'{program}'"
    elif shutil.which("git-lfs") is None:
        pytest.skip("git-lfs is not installed")
    for what in ("clean", "smudge"):
        project.git("config", "--global", f"filter.lfs.{what}", f"{command} {what}")
    project.git("config", "--global", "filter.lfs.required", "true")
    project.write("old.bin", "old content\n")
    project.commit("with a large file", **{"__gitattributes": "*.bin filter=lfs\n"})
    return project


def test_contents_of_git_lfs_come_with_an_apply(world: World, lfs: Project) -> None:
    resource, sandbox = _plan_of(world, lfs)
    assert sandbox.read("old.bin") == "old content\n"
    sandbox.write("new.bin", "new content\n")
    store = lfs.git_dir / "lfs/objects"
    before = _contents(store)
    assert changed(world.registry.diff(resource)) == {"new.bin": "added"}
    assert _contents(store) == before
    world.apply(resource)
    added = hashlib.sha256(b"new content\n").hexdigest()
    assert _contents(store) == sorted([*before, added])
    assert lfs.read("new.bin") == "new content\n"
    assert f"sha256:{added}" in lfs.git("cat-file", "blob", "HEAD:new.bin")
    assert lfs.status() == ""
    # Somebody else gets it from there.
    (lfs.path / "new.bin").unlink()
    lfs.git("checkout", "--", "new.bin")
    assert lfs.read("new.bin") == "new content\n"


def test_contents_of_git_lfs_go_where_the_user_keeps_them(world: World, lfs: Project) -> None:
    if shutil.which("git-lfs") is None:
        pytest.skip("who has no git-lfs has told it nothing")
    lfs.git("config", "lfs.storage", str(world.root / "large files"))
    lfs.write("old.bin", "older content\n")
    lfs.commit()
    resource, sandbox = _plan_of(world, lfs)
    sandbox.write("new.bin", "new content\n")
    world.apply(resource)
    added = hashlib.sha256(b"new content\n").hexdigest()
    assert added in _contents(world.root / "large files")
    assert added not in _contents(lfs.git_dir / "lfs")


def test_a_filter_that_must_write_elsewhere_says_what_to_do(world: World) -> None:
    project = world.project()
    resource, sandbox = _plan_of(world, project)
    sandbox.write("a.py", "changed\n")
    project.git("config", "filter.log.clean", f"tee '{world.root}/log'")
    project.git("config", "filter.log.smudge", "cat")
    project.git("config", "filter.log.required", "true")
    (project.git_dir / "info/attributes").write_text("a.py filter=log\n")
    with pytest.raises(SandboxError) as caught:
        world.registry.diff(resource)
    assert str(world.root / "log") in caught.value.message
    assert "`confinement` in the action file" in caught.value.hint
    assert not (world.root / "log").exists()
    allowed = replace(resource.confinement, write=(str(world.root),))
    held = replace(resource, confinement=allowed)
    assert changed(world.registry.diff(held)) == {"a.py": "modified"}
    assert (world.root / "log").read_text() == "changed\n"


def test_a_filter_that_ends_git_is_an_error_that_names_the_sandbox(world: World) -> None:
    project = world.project()
    resource, sandbox = _plan_of(world, project)
    sandbox.write("a.py", "changed\n")
    # Its whole group: git, and the shell that runs it. Not earlier: the user's own git has it too.
    project.git("config", "filter.bad.clean", "kill -9 0")
    (project.git_dir / "info/attributes").write_text("*.py filter=bad\n")
    with pytest.raises(SandboxError) as caught:
        world.registry.diff(resource)
    assert str(sandbox.path) in caught.value.message
    assert "filter" in caught.value.hint
    assert list(world.scratch.iterdir()) == []


STRANGE = {
    "a link": "rm -f $f; ln -s '{root}/theirs' $f",
    "a pipe": "rm -f $f; mkfifo $f",
    "a folder": "rm -f $f; mkdir $f",
    "a folder that is a link": "rm -rf src; ln -s '{root}' src",
    "nothing": "rm -f $f",
}


@pytest.mark.parametrize("way", STRANGE)
def test_what_a_filter_puts_in_the_place_of_a_file_is_not_taken(world: World, way: str) -> None:
    """It runs while the new files are made, in the folder from which they are moved."""
    project = world.project(**{"z__txt": "z\n", "src/new__txt": "old\n"})
    resource, sandbox = _plan_of(world, project)
    (world.root / "theirs").write_text("theirs\n")
    (world.root / "new.txt").write_text("theirs\n")
    sandbox.write("src/new.txt", "plan\n")
    sandbox.write("z.txt", "plan\n")
    prepared = world.prepare(resource)
    trick = STRANGE[way].format(root=world.root)
    project.git("config", "filter.trick.smudge", f"f=src/new.txt; {trick}; cat")
    (project.git_dir / "info/attributes").write_text("z.txt filter=trick\n")
    before = project.everything()
    with pytest.raises(ApplyRefusedError) as caught:
        world.registry.carry_out(resource, prepared)
    assert "filter" in caught.value.message
    after = project.everything()
    assert {**after, "config": before["config"]} == before
    assert (world.root / "new.txt").read_text() == (world.root / "theirs").read_text() == "theirs\n"


def test_bits_that_lend_rights_are_not_taken_from_a_filter(world: World) -> None:
    project = world.project(**{"a__sh": "a\n", "z__txt": "z\n"})
    resource, sandbox = _plan_of(world, project)
    sandbox.write("a.sh", "plan\n").chmod(0o755)
    sandbox.write("z.txt", "plan\n")
    prepared = world.prepare(resource)
    project.git("config", "filter.trick.smudge", "chmod 6755 a.sh; cat")
    (project.git_dir / "info/attributes").write_text("z.txt filter=trick\n")
    world.registry.carry_out(resource, prepared)
    assert stat.S_IMODE((project.path / "a.sh").stat().st_mode) == 0o755


def test_a_half_carried_out_apply_does_not_run_the_plans_scripts(world: World) -> None:
    """Files of the plan are in the project when it is repeated, or taken back, after a kill."""
    project = world.project(**{"tools/clean__sh": "cat\n", "a__txt": "a\n"})
    project.git("config", "filter.own.clean", "sh tools/clean.sh")
    project.git("config", "filter.own.smudge", "sh tools/clean.sh")
    (project.git_dir / "info/attributes").write_text("*.txt filter=own\n")
    resource, sandbox = _plan_of(world, project)
    evil = f"touch '{world.root}/got-out' '{project.path}/got-out' 2>/dev/null; cat\n"
    sandbox.write("tools/clean.sh", evil)
    sandbox.write("a.txt", "plan\n")
    prepared = world.prepare(resource)
    project.write("tools/clean.sh", evil)
    world.registry.carry_out(resource, prepared)
    assert project.read("a.txt") == "plan\n"
    project.write("tools/clean.sh", evil)
    assert world.registry.revert(resource, prepared) == ()
    assert project.read("a.txt") == "a\n"
    assert not list(world.root.rglob("got-out"))


def test_objects_that_git_would_not_make_are_not_brought_over(world: World) -> None:
    project = world.project()
    resource, _ = _plan_of(world, project)
    views = git_views(world.scratch)
    with views.of_files(resource) as held:
        blob = held.git.run("hash-object", "-w", "--stdin", input=b"evil\n").stdout.decode().strip()
        hooks = _tree(held.git, f"100755 blob {blob}\tpost-commit\n")
        folder = _tree(held.git, f"040000 tree {hooks}\thooks\n")
        top = _tree(held.git, f"040000 tree {folder}\t.git\n")
        over = Bringing(views=views, held=held, resource=resource)
        user = Git(resource.location)
        with pytest.raises(GitError) as caught:
            over.unpack(over.pack(held.git, top), user, [top], strict=True)
        assert "hasDotgit" in caught.value.stderr
        # What is not whole is refused as well.
        with pytest.raises(GitError):
            over.unpack(over.pack(held.git, blob), user, ["0" * 39 + "1"], strict=True)


def test_many_objects_stay_in_a_pack(world: World) -> None:
    project = world.project()
    resource, sandbox = _plan_of(world, project)
    for number in range(150):
        sandbox.write(f"many/{number}", f"{number}\n")
    world.apply(resource)
    assert len(list((project.git_dir / "objects/pack").glob("*.pack"))) == 1
    assert not list((project.git_dir / "objects").rglob("tmp_*"))
    project.git("fsck", "--strict")
    assert project.read("many/149") == "149\n"


def test_looking_leaves_the_users_repository_and_the_sandbox_alone(world: World) -> None:
    project = world.project()
    project.git("config", "filter.own.clean", "touch planted ../planted; cat")
    (project.git_dir / "info/attributes").write_text("* filter=own\n")
    resource, sandbox = _plan_of(world, project)
    sandbox.write("a.py", "changed\n")
    before = (project.repository(), sorted(sandbox.path.iterdir()))
    world.registry.diff(resource)
    assert (project.repository(), sorted(sandbox.path.iterdir())) == before


def _tree(git: Git, text: str) -> str:
    return git.run("mktree", input=text.encode()).stdout.decode().strip()
