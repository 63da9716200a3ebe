"""What an agent, a user and an editor do in one tree, drawn at random, as lines for a shell."""

import random
from collections.abc import Callable
from dataclasses import dataclass

NAMES = ("README.md", "src/app.py", "src/old.py", "run.sh", "debug.log", "link", "a", "b", "d/e")
FOLDERS = ("src", "d", "new", "empty", "docs")
BRANCHES = ("main", "one", "two")
_NEW = "$(git commit-tree -m new -p HEAD 'HEAD^{tree}')"


@dataclass(slots=True)
class Work:
    """No line is the same as another: what was written when can be told."""

    chance: random.Random
    number: int = 0

    def by_agent(self) -> str:
        return self._lines([*_FILES, *_GIT], self.chance.randint(1, 4))

    def by_user(self, upstream: str) -> str:
        """Mostly both: files, and something of git's before or after that."""
        if self.chance.random() < 0.15:
            return _fetched(self._next(), upstream)
        files = self._lines([*_FILES, _saved], self.chance.randint(1, 2))
        git = self._lines([*_GIT, _moved, _moved, _named, _cleaned], self.chance.randint(1, 2))
        return self.chance.choice([files, git, f"{files}; {git}", f"{git}; {files}"])

    def by_editor(self) -> str:
        return _saved(self.chance, self._next())

    def save(self) -> tuple[str, str]:
        """A file and what it becomes."""
        return self.chance.choice(NAMES), f"m{self._next()}"

    def _lines(self, of: "list[_Line]", count: int) -> str:
        return "; ".join(
            [*(self.chance.choice(of)(self.chance, self._next()) for _ in range(count))]
        )

    def _next(self) -> int:
        self.number += 1
        return self.number


_Line = Callable[[random.Random, int], str]


# --- files --------------------------------------------------------------------------------------


def _written(chance: random.Random, number: int) -> str:
    name = chance.choice(NAMES)
    return f"mkdir -p $(dirname {name}); echo w{number} {chance.choice(['>', '>>'])} {name}"


def _added(chance: random.Random, number: int) -> str:
    folder = chance.choice(FOLDERS)
    return f"mkdir -p {folder}; echo n{number} > {folder}/n{number % 3}"


def _deleted(chance: random.Random, _: int) -> str:
    return f"rm -rf {chance.choice([*NAMES, *FOLDERS])}"


def _renamed(chance: random.Random, _: int) -> str:
    return f"mv -T {chance.choice([*NAMES, *FOLDERS])} {chance.choice(NAMES)}"


def _mode(chance: random.Random, _: int) -> str:
    return f"chmod {chance.choice(['755', '644', '700'])} {chance.choice([*NAMES, *FOLDERS])}"


def _linked(chance: random.Random, number: int) -> str:
    name = chance.choice(NAMES)
    return f"rm -rf {name}; ln -s {chance.choice([*NAMES, f'../nothing{number}'])} {name}"


def _folder_for_file(chance: random.Random, number: int) -> str:
    name = chance.choice(NAMES)
    return f"rm -rf {name}; mkdir {name}; echo f{number} > {name}/inside"


def _file_for_folder(chance: random.Random, number: int) -> str:
    name = chance.choice(FOLDERS)
    return f"rm -rf {name}; echo f{number} > {name}"


def _saved(chance: random.Random, number: int) -> str:
    """As editors do: all of it beside, then in its place."""
    name = chance.choice(NAMES)
    return f"echo s{number} > .{number}.swp && mv -T .{number}.swp {name} || rm -f .{number}.swp"


_FILES: list[_Line] = [
    *(_written, _written, _added, _deleted, _renamed),
    *(_mode, _linked, _folder_for_file, _file_for_folder),
]


# --- git ----------------------------------------------------------------------------------------


def _committed(_: random.Random, number: int) -> str:
    return f"git add -A; git commit -q --allow-empty -m c{number}"


def _staged(chance: random.Random, _: int) -> str:
    return f"git add {chance.choice(NAMES)}"


def _stashed(chance: random.Random, _: int) -> str:
    return chance.choice(["git stash -q", "git stash -qu", "git stash pop -q", "git stash drop -q"])


def _switched(chance: random.Random, number: int) -> str:
    branch = chance.choice(BRANCHES)
    return chance.choice(
        [
            f"git switch -q {branch} || git switch -qc {branch}",
            f"git switch -qfC {branch} HEAD~1",
            f"git checkout -q --detach; git commit -q --allow-empty -m d{number}",
        ]
    )


def _moved(chance: random.Random, number: int) -> str:
    branch = chance.choice(BRANCHES)
    return chance.choice(
        [
            f"git branch -f {branch} HEAD",
            f"git branch -f {branch} HEAD~1",
            f"git branch m{number}",
            f"git branch -qD {branch}",
            f"git tag -f t{number % 2}",
            f"git tag -fam annotated t{number % 2}",
            "git reset -q --hard HEAD~1",
            f"git merge -q {branch}",
            "git pack-refs --all",
        ]
    )


def _named(chance: random.Random, number: int) -> str:
    """Always something that was not there."""
    return chance.choice(
        [f"git branch b{number}", f"git tag g{number}", f"git branch -f one {_NEW}"]
    )


def _cleaned(chance: random.Random, _: int) -> str:
    return chance.choice(["git clean -fdq", "git clean -fdqx", "git checkout -q -- ."])


_GIT: list[_Line] = [_committed, _committed, _staged, _stashed, _switched, _moved, _moved]


def _fetched(number: int, upstream: str) -> str:
    git = f"git --git-dir={upstream}"
    commit = f"{git} commit-tree -m u{number} -p main main^{{tree}}"
    return f"{git} update-ref refs/heads/main $({commit}); git fetch -q origin"
