"""A real repository, and sandboxes made from it, for the tests of the git adapter."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.runners import adapters_in, database_workers

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import PlanError
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import GIT_CHECKOUT
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.sandbox.sandboxes import SandboxesByType

PLAN = PlanId("01J00000000000000000000001")
OTHER_PLAN = PlanId("01J00000000000000000000002")
_RESOURCE = ResourceId("01J00000000000000000000003")
_IDENTITY = "[user]\n\tname = Uma User\n\temail = uma@example.com\n"


class Project:
    """The user's own checkout, handled as the user would."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *args: str, check: bool = True) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        done = subprocess.run(
            ["git", "-C", str(self.path), *args], capture_output=True, check=False, env=env
        )
        assert not check or done.returncode == 0, (args, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(self, name: str) -> str:
        return (self.path / name).read_bytes().decode()

    def commit(self, message: str = "work", **files: str) -> str:
        for name, content in files.items():
            self.write(name.replace("__", "."), content)
        self.git("add", "-A")
        self.git("-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", "commit",
                 "--allow-empty", "-qm", message)  # fmt: skip
        return self.git("rev-parse", "HEAD")

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    @property
    def git_dir(self) -> Path:
        return Path(self.git("rev-parse", "--absolute-git-dir"))

    def status(self) -> str:
        return self.git("status", "--porcelain")

    def refs(self, prefix: str = "refs/heads") -> list[str]:
        return self.git("for-each-ref", "--format=%(refname) %(objectname)", prefix).splitlines()

    def our_refs(self) -> list[str]:
        return [*self.refs("refs/cleveragents"), *self.refs("refs/heads/cleveragents")]

    def everything(self) -> dict[str, object]:
        """All that is the user's, to the byte: files with times, index, HEAD, stash, config."""
        git_dir = self.git_dir
        common = Path(self.git("rev-parse", "--path-format=absolute", "--git-common-dir"))
        index = git_dir / "index"
        return {
            "files": {str(p): _facts(p) for p in self.files()},
            "index": index.read_bytes() if index.exists() else None,
            "head": (git_dir / "HEAD").read_bytes(),
            "reflog": self.git("reflog", "show", "HEAD"),
            "stash": self.git("stash", "list"),
            "config": (common / "config").read_bytes(),
            "branches": [
                ref for ref in self.refs("refs") if not ref.startswith("refs/cleveragents/")
            ],
            "strays": sorted(p.name for p in git_dir.iterdir()),
        }

    def repository(self) -> dict[str, bytes]:
        """Every file of the repository but pins of ours."""
        top = Path(self.git("rev-parse", "--path-format=absolute", "--git-common-dir"))
        found = (path for path in top.rglob("*") if path.is_file())
        named = {str(path.relative_to(top)): path.read_bytes() for path in found}
        return {k: v for k, v in named.items() if "refs/cleveragents/" not in k}

    def files(self) -> list[Path]:
        found = self.path.rglob("*")
        return [p for p in found if ".git" not in p.relative_to(self.path).parts]


class World:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.sandboxes = root / "data" / "sandboxes"
        self.scratch = root / "data" / "scratch"
        self.workers = database_workers()
        self.adapters = adapters_in(root / "data", self.workers)
        self.snapshots = CheckpointManager(self.adapters)
        self.registry = SandboxesByType(self.adapters)
        self.applied: dict[str, PreparedApply] = {}

    def project(self, name: str = "my project", **files: str) -> Project:
        path = self.root / name
        path.mkdir(parents=True)
        project = Project(path)
        project.git("init", "-q")
        project.commit("start", **(files or {"a__py": "one\ntwo\nthree\n", "b__py": "b\n"}))
        return project

    def spec(self, location: Path, name: str = "code", include: tuple[str, ...] = ()):
        return ResourceSpec(
            name=name, type=GIT_CHECKOUT.type, location=str(location), include=include
        )

    def inspected(
        self,
        project: Project,
        *,
        plan_id: PlanId = PLAN,
        name: str = "code",
        include: tuple[str, ...] = (),
        uncommitted: bool = False,
    ) -> PlanResource:
        spec = self.spec(project.path, name, include)
        found = self.registry.inspect(spec, plan_id, include_uncommitted=uncommitted)
        return PlanResource(
            resource_id=_RESOURCE,
            plan_id=plan_id,
            name=name,
            type=GIT_CHECKOUT.type,
            location=found.location,
            base=found.base,
            sandbox_path=self.registry.path_for(plan_id, name, GIT_CHECKOUT.type),
            include=include,
            details=found.details,
        )

    def sandbox(
        self,
        project: Project,
        *,
        plan_id: PlanId = PLAN,
        include: tuple[str, ...] = (),
        uncommitted: bool = False,
    ) -> tuple[PlanResource, Project]:
        resource = self.inspected(
            project, plan_id=plan_id, include=include, uncommitted=uncommitted
        )
        self.registry.create(resource)
        return resource, Project(Path(resource.sandbox_path))

    def prepare(
        self, resource: PlanResource, *, branch: str | None = None, commit: bool = True
    ) -> PreparedApply:
        options = ApplyOptions(message="the plan's work", branch=branch, commit=commit)
        return self.registry.prepare_apply(resource, options)

    def apply(
        self, resource: PlanResource, *, branch: str | None = None, commit: bool = True
    ) -> str:
        prepared = self.prepare(resource, branch=branch, commit=commit)
        return self.carry_out(resource, prepared)

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        """As an apply that nothing stands in the way of: carried out and settled."""
        ref = self.registry.carry_out(resource, prepared)
        self.registry.finish(resource, prepared)
        self.applied[resource.resource_id] = prepared
        return ref

    def applied_diff(self, resource: PlanResource, ref: str) -> ResourceDiff:
        """As it is told from what is on record of the apply."""
        intent = self.applied[resource.resource_id].token
        return self.registry.applied_diff(replace(resource, intent=intent), ref)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    world.home.mkdir()
    (world.home / ".gitconfig").write_text(_IDENTITY + "[init]\n\tdefaultBranch = main\n")
    monkeypatch.setenv("HOME", str(world.home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    return world


def changed(diff: ResourceDiff) -> dict[str, str]:
    return {file.path: file.kind.value for file in diff.files}


def hostile(world: World, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything in the user's set-up that could stop or mislead a git command of ours."""
    hooks = world.root / "hooks"
    hooks.mkdir()
    names = ["pre-commit", "post-checkout", "post-index-change", "reference-transaction",
             "commit-msg", "post-commit", "fsmonitor"]  # fmt: skip
    for name in names:
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\ntouch '{world.root}/hook-ran'\nexit 1\n")
        hook.chmod(0o755)
    settings = {
        "commit.gpgsign": "true",
        "user.signingkey": "nobody",
        "gpg.program": "false",
        "diff.external": "false",
        "diff.noprefix": "true",
        "color.ui": "always",
        "core.pager": "false",
        "core.editor": "false",
        "core.autocrlf": "input",
        "core.safecrlf": "true",
        "core.fsmonitor": str(hooks / "fsmonitor"),
        "submodule.recurse": "true",
        "branch.autoSetupMerge": "always",
        "core.hooksPath": str(hooks),
    }
    for key, value in settings.items():
        project.git("config", "--global", key, value)
    for key, value in {
        "GIT_DIR": "/nowhere",
        "GIT_WORK_TREE": "/nowhere",
        "GIT_INDEX_FILE": "/nowhere/index",
        "GIT_OBJECT_DIRECTORY": "/nowhere",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
    }.items():
        monkeypatch.setenv(key, value)


def hook_ran(world: World) -> bool:
    return (world.root / "hook-ran").exists()


def _facts(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return (found.st_mode, path.readlink())
    if not stat.S_ISREG(found.st_mode):
        return (found.st_mode,)
    return (found.st_mode, found.st_mtime_ns, path.read_bytes())


def untouched_after(
    world: World, project: Project, resource: PlanResource, error: type[PlanError], **options
) -> PlanError:
    """Preparing raises, and has changed nothing of the user's."""
    before = project.everything()
    with pytest.raises(error) as caught:
        world.prepare(resource, **options)
    assert project.everything() == before
    assert caught.value.hint
    return caught.value
