"""A step sees its sandbox at the project's own path, and the project stays as it is."""

from tests.support.trees import tree_of
from tests.support.world import World, shell


def test_a_step_stands_at_the_path_of_the_project(world: World) -> None:
    before = tree_of(world.project.path)
    told = world.beside / "told"
    plan = world.run(
        shell(f'(pwd; echo "$PWD"; echo "$CLEVERAGENTS_SANDBOX_CODE") > {told}; echo new > new.txt')
    )
    assert told.read_text().splitlines() == [str(world.project.path)] * 3
    assert (plan.sandbox / "new.txt").read_text() == "new\n"
    assert not (world.project.path / "new.txt").exists()
    assert tree_of(world.project.path) == before


def test_git_at_the_path_of_the_project_works_on_the_repository_of_the_sandbox(
    world: World,
) -> None:
    head = world.project.git("rev-parse", "HEAD")
    told = world.beside / "told"
    plan = world.run(
        shell(
            f"mkdir inner; cd inner; (git rev-parse --show-toplevel; git log --format=%H -1; "
            f"git fsck --no-dangling 2>&1; git status --porcelain) > {told}; "
            "cd ..; echo new > new.txt; git add -A; git commit -qm inside; git mv new.txt other.txt"
        )
    )
    lines = told.read_text().splitlines()
    assert lines[0] == str(world.project.path)
    assert not [line for line in lines if "error" in line]
    assert world.project.git("rev-parse", "HEAD") == head
    assert (plan.sandbox / "other.txt").exists()
    plan("diff").ok()


def test_a_step_cannot_write_the_project_by_any_name_it_has(world: World) -> None:
    before = tree_of(world.project.path)
    world.run(
        shell(
            "echo x > README.md; for f in /proc/self/root /proc/1/root /proc/self/cwd; do"
            f" echo y >> $f{world.project.path}/README.md; done; umount {world.project.path}; "
            'rm -rf "$(cat "$(git rev-parse --git-dir)/objects/info/alternates")"; true'
        )
    )
    assert tree_of(world.project.path) == before
