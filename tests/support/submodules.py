"""A user's project with submodules: one below a folder, which has one of its own."""

import shutil
import subprocess
from pathlib import Path

from tests.support.projects import Project
from tests.support.world import World

ALLOW = "-c protocol.file.allow=always"
LIB, INNER = "deps/lib", "deps/lib/inner"
# As agents and people work in a submodule.
COMMIT_INSIDE = (
    "cd deps/lib && echo two > lib.txt && echo new > new.txt && git add -A && git commit -qm inside"
)
COMMIT_DEEP = (
    "cd deps/lib/inner && echo two > inner.txt && git commit -qam deep"
    " && cd .. && git commit -qam 'with deep'"
)


class WithSubmodules:
    """`library` and `innermost` are where the submodules were cloned from."""

    def __init__(self, world: World, template: "WithSubmodules | None" = None) -> None:
        self.world = world
        self.project = world.project
        environ = world.agents.environ
        if template is None:
            self.innermost = _repository(world.top / "innermost", environ, "inner.txt")
            self.library = _repository(world.top / "library", environ, "lib.txt")
            self._make()
        else:
            self.innermost, self.library = template.innermost, template.library
            shutil.rmtree(self.project.path)
            shutil.copytree(template.project.path, self.project.path, symlinks=True)
        self.lib = Project(self.project.path / LIB, environ)
        self.inner = Project(self.project.path / INNER, environ)

    def _make(self) -> None:
        add(self.library, self.innermost.path, "inner")
        self.library.commit("with inner")
        add(self.project, self.library.path, LIB)
        self.project.git(*ALLOW.split(), "submodule", "--quiet", "update", "--init", "--recursive")
        self.project.commit("with submodules")

    def link(self, path: str = LIB, commit: str = "HEAD") -> str:
        """The commit that a commit of the project names for the submodule."""
        return self.project.git("rev-parse", f"{commit}:{path}")

    def state(self) -> dict[str, dict[str, object]]:
        """Everything that is the user's, in the project and in its submodules."""
        repositories = {"project": self.project, "lib": self.lib, "inner": self.inner}
        return {name: one.fingerprint() for name, one in repositories.items()}

    def traces(self) -> list[str]:
        """What an apply may not leave behind in any of the repositories, but for what it keeps."""
        places = [one.git_dir for one in (self.project, self.lib, self.inner)]
        strange = [path for place in places for path in place.glob("*cleveragents*")]
        strange = [path for path in strange if not path.name.startswith("cleveragents-apply-")]
        # Empty: where the repository of a new submodule goes when the apply is undone.
        strange = [path for path in strange if not path.is_dir() or any(path.iterdir())]
        return [str(path) for path in strange + [p for f in places for p in f.glob("index.*")]]

    def whole(self, commit: str = "HEAD") -> None:
        """What the commit names can be had from the project alone, in a clone that starts anew."""
        copy = self.world.top / f"cloned-{len(list(self.world.top.glob('cloned-*')))}"
        self.project.git("clone", "-q", str(self.project.path), str(copy))
        clone = Project(copy, self.world.agents.environ)
        clone.git("checkout", "-q", self.project.git("rev-parse", commit))
        for place, source in ((LIB, self.lib), ("inner", self.inner)):
            clone = clone if place == LIB else Project(copy / LIB, self.world.agents.environ)
            clone.git("config", f"submodule.{place}.url", str(source.git_dir))
            clone.git(*ALLOW.split(), "submodule", "--quiet", "update", "--init", place)


def add(project: Project, source: Path, place: str) -> None:
    project.git(*ALLOW.split(), "submodule", "--quiet", "add", str(source), place)


def _repository(path: Path, environ: dict[str, str], name: str) -> Project:
    path.mkdir()
    made = Project(path, environ)
    made.git("init", "-q", "-b", "main")
    made.write(name, "one\n")
    made.commit("first")
    return made


def git_in(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *args], capture_output=True, check=True)
    return done.stdout.decode().strip()
