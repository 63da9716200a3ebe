"""The repository of a submodule in the sandbox is a step's to write: nothing of it gets out."""

from pathlib import Path

import pytest
from tests.support.attacks import COMMANDS, REQUIRED, payload, traces
from tests.support.outside import nothing_happens
from tests.support.submodules import WithSubmodules
from tests.support.world import World, shell

SETTINGS = (
    *("core.fsmonitor", "core.hooksPath", "core.sshCommand", "core.pager", "core.editor"),
    *("diff.external", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process"),
    *("diff.evil.textconv", "diff.evil.command", "merge.evil.driver", "gpg.program"),
    *("uploadpack.packObjectsHook", "core.alternateRefsCommand", "credential.helper"),
)


@pytest.fixture
def project(world: World) -> WithSubmodules:
    return WithSubmodules(world)


def test_programs_of_a_submodules_settings(project: WithSubmodules) -> None:
    world = project.world
    into = "$(git -C deps/lib rev-parse --absolute-git-dir)"
    lines = [
        f"cat > deps/lib/evil.sh <<'END'\n{payload(world)}END",
        "chmod +x deps/lib/evil.sh",
        "echo '* filter=evil diff=evil merge=evil' > deps/lib/.gitattributes",
        "echo more >> deps/lib/lib.txt",
        *(f"git config -f {into}/config {key} $PWD/deps/lib/evil.sh" for key in SETTINGS),
        f"mkdir -p {into}/hooks; for n in post-index-change reference-transaction post-checkout;"
        f" do cp deps/lib/evil.sh {into}/hooks/$n; done",
    ]
    plan = world.use(shell("\n".join(lines)), confinement=REQUIRED)
    plan.execute()
    plan("apply", "--yes", "--branch", "result")
    assert traces(world) == [], "apply"
    for name, command in COMMANDS.items():
        command(plan)
        assert traces(world) == [], name


PLANTED = {
    "its folder": "rm -rf $M; ln -s $OUT $M",
    "a folder on the way": "rm -rf $G/modules/deps; ln -s $OUT $G/modules/deps",
    "all modules": "rm -rf $G/modules; ln -s $OUT $G/modules",
    "its parts": "for n in HEAD index config packed-refs refs objects logs info hooks rebase-merge;"
    " do rm -rf $M/$n; ln -s $OUT/$n $M/$n; done",
}


@pytest.mark.parametrize("way", PLANTED.values(), ids=list(PLANTED))
def test_nothing_goes_through_a_link_in_a_submodules_repository(
    project: WithSubmodules, way: str
) -> None:
    world = project.world
    out = _outside(world.top / "out")
    told = f"OUT='{out}'; G=$(git rev-parse --absolute-git-dir); M=$G/modules/deps/lib; {way}"
    plan = world.use(
        shell("cd deps/lib && echo x > lib.txt && git commit -qam one", "commit"),
        shell(told, "plant"),
        shell("echo two > two.txt", "change"),
        confinement=REQUIRED,
    )
    before = project.state()
    with nothing_happens(out):
        plan.execute().ok()
        plan("diff")
        plan("checkpoint", "verify").ok()
        after = next(g for g in plan.groups if g.step_index == 0 and "after" in g.label)
        plan.rollback(after.group_id).ok()
        assert (plan.sandbox / "deps/lib/lib.txt").read_text() == "x\n"
    assert project.state() == before


def _outside(place: Path) -> Path:
    """What a repository has, and is the user's."""
    for name in ("refs/heads", "objects/pack", "logs/refs", "info", "hooks", "rebase-merge", "lib"):
        (place / name).mkdir(parents=True)
        (place / name / "file").write_text("theirs\n")
    for name in ("HEAD", "index", "config", "packed-refs"):
        (place / name).write_text("theirs\n")
    return place
