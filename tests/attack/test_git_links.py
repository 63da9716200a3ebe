"""Every place in a sandbox's own repository as a link to the outside: nothing goes through it."""

from pathlib import Path

import pytest
from tests.support.attacks import COMMANDS, on_start
from tests.support.outside import nothing_happens
from tests.support.projects import Project
from tests.support.world import PlanHandle, World, shell

# $G is the sandbox's own repository, $OUT the user's, who has there what git would look for.
PLANTED = {
    "all of it": "rm -rf $G/*; for n in objects refs logs info hooks; do ln -s $OUT/$n $G/$n; done;"
    " for n in HEAD config index packed-refs shallow; do ln -s $OUT/$n $G/$n; done",
    "files": "for n in HEAD config index packed-refs shallow config.worktree ORIG_HEAD MERGE_HEAD"
    " REBASE_HEAD BISECT_LOG sharedindex.0123456789012345678901234567890123456789 commondir gitdir"
    " FETCH_HEAD description; do ln -sf $OUT/file $G/$n; done",
    "files that are not there": "for n in index packed-refs HEAD shallow index.lock HEAD.lock"
    " packed-refs.lock config.lock; do ln -sf $OUT/gone $G/$n; done",
    "the user's index": "ln -sf $OUT/index $G/index",
    "folders": "for n in objects refs logs info hooks modules worktrees rebase-merge rebase-apply"
    " sequencer lfs; do rm -rf $G/$n; ln -s $OUT/folder $G/$n; done",
    "objects": "cd $G/objects; rm -rf *; for n in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do"
    " for m in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do ln -s $OUT/folder $n$m; done; done;"
    " ln -s $OUT/folder pack; ln -s $OUT/folder info",
    "each object": "cd $G/objects; for f in ??/* pack/* info/*; do"
    " ln -sf $OUT/file $f || true; done",
    "references": "cd $G/refs; rm -rf *; for n in heads tags remotes notes replace stash; do"
    " ln -s $OUT/folder $n; done",
    "below references": "cd $G/refs; mkdir -p heads/deep tags; ln -s $OUT/file heads/x;"
    " ln -s $OUT/folder heads/deep/y; ln -s $OUT/file heads/main.lock; ln -s $OUT/file stash",
    "logs": "cd $G; mkdir -p logs; rm -rf logs/*; ln -s $OUT/file logs/HEAD;"
    " ln -s $OUT/folder logs/refs",
    "below logs": "cd $G/logs; mkdir -p refs/heads; ln -s $OUT/file refs/stash;"
    " ln -s $OUT/folder refs/heads/deep; ln -s $OUT/folder refs/tags; ln -s $OUT/file refs/heads/x",
    "below others": "cd $G; mkdir -p info hooks sequencer rebase-merge modules/m/objects;"
    " for n in info/exclude info/attributes hooks/pre-commit sequencer/todo rebase-merge/onto; do"
    " ln -sf $OUT/file $n; done; ln -s $OUT/folder info/deep; ln -s $OUT/folder rebase-merge/deep;"
    " echo 'ref: x' > modules/m/HEAD; ln -s $OUT/folder modules/m/refs; ln -s $OUT/file"
    " modules/m/index; printf '[core]\\n\\tworktree = ../../../code/m\\n' > modules/m/config;"
    " cd - > /dev/null; mkdir -p m; echo gitdir: ../../code.git/modules/m > m/.git",
    "pipes": "cd $G; for n in HEAD config index packed-refs shallow info/exclude refs/heads/p"
    " objects/info/alternates logs/HEAD MERGE_HEAD; do rm -rf $n; mkfifo $n; done;"
    " for f in objects/??/*; do rm -f $f; mkfifo $f; done",
}
MODES = ("required", "off")
# Without these git takes the folder for no repository at all.
UNUSABLE = {"all of it", "files", "files that are not there", "pipes"}


@pytest.fixture
def out(world: World) -> Path:
    """A repository's worth of files that are the user's."""
    place = world.top / "out"
    (place / "folder/inner").mkdir(parents=True)
    (place / "folder/inner/file").write_text("theirs\n")
    (place / "folder/stash").write_text("theirs\n")
    for name in ("HEAD", "config", "packed-refs", "shallow", "file"):
        (place / name).write_text("theirs\n")
    (place / "index").write_bytes((world.project.git_dir / "index").read_bytes())
    for name in ("objects", "refs", "logs", "info", "hooks"):
        (place / name / "heads").mkdir(parents=True)
        (place / name / "file").write_text("theirs\n")
    return place


def _planted(world: World, out: Path, way: str, mode: str) -> PlanHandle:
    told = f"OUT='{out}'; G=$(git rev-parse --absolute-git-dir); {PLANTED[way]}"
    return world.use(
        shell("echo one >> README.md; git add -A; git commit -qm one; git stash list", "commit"),
        shell(told, "plant"),
        shell("echo two > two.txt", "change"),
        confinement={"mode": mode},
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", PLANTED)
def test_nothing_goes_through_a_link_in_the_repository(
    world: World, out: Path, way: str, mode: str
) -> None:
    plan = _planted(world, out, way, mode)
    user = world.project.fingerprint()
    with nothing_happens(out, world.project.path, but=(world.project.path / ".git",)):
        plan.execute().ok()
        for name in ("checkpoint create", "diff", "checkpoint verify"):
            COMMANDS[name](plan).ok()
        # Of what the step has made unusable it says so, and of nothing else.
        found = {finding["check"] for finding in COMMANDS["doctor"](plan).data["findings"]}
        assert found == ({"sandboxes"} if way in UNUSABLE else set())
        plan.rollback(on_start(plan)).ok()
        plan.rollback(plan.groups[-1].group_id).ok()
        COMMANDS["resume"](plan)
    assert world.project.fingerprint() == user


@pytest.mark.parametrize("way", ["the user's index", "files", "folders", "each object"])
def test_what_was_planted_is_not_stored(world: World, out: Path, way: str) -> None:
    (out / "file").write_text("the user's secret\n")
    (out / "folder/inner/file").write_text("the user's secret\n")
    plan = _planted(world, out, way, "required")
    plan.execute().ok()
    records = "\n".join(world.records())
    assert "the user's secret" not in records
    assert b"the user's secret".hex().upper() not in records.upper()


@pytest.mark.parametrize("way", ["objects", "folders", "references", "files", "pipes"])
def test_a_rollback_brings_the_repository_back(world: World, out: Path, way: str) -> None:
    plan = _planted(world, out, way, "required")
    plan.execute().ok()
    plan.rollback(next(g for g in plan.groups if g.step_index == 1).group_id).ok()
    place = plan.sandbox.with_name("code.git")
    assert not any(path.is_symlink() for path in place.rglob("*"))
    looking = Project(plan.sandbox, world.agents.environ)
    looking.git("fsck", "--no-dangling", "--no-reflogs")
    assert looking.git("log", "-1", "--format=%s") == "one"
    assert looking.git("status", "--porcelain") == ""
