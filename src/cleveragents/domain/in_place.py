"""Rules for plans that work in the user's own tree: what a way back spares, and whose a change is.

In place, anybody may have changed anything between two groups. So a way back replaces only what is
exactly as a group holds it, and leaves everything else as it is, and says so (ADR 0100).
"""

from collections.abc import Sequence

from msgspec import Struct

from cleveragents.domain.errors.actors import listed

OTHERS = "agent.others"
"""The tool of a step that nobody of ours has done: what was changed between two groups."""

ACTION = "in-place"
"""What the action of a timeline is called: it outlives the programs that work in it."""

DRAFT = "-cleveragents"
"""The ending of a new file that is about to take the place of a database; no snapshot has it."""

DONE = "done"
"""What the result of a timeline is called that somebody has closed."""


class Sparing(Struct, frozen=True, kw_only=True):
    """A path may be replaced only if it is as the snapshot `held` has it. `last` is the snapshot of
    the last group before: what moved after it was moved by others, and references that did are
    left. With `keep`, so are files."""

    held: str
    last: str | None = None
    keep: bool = False


def others_name(paths: Sequence[str]) -> str:
    """What a step of others is called; where no file changed, it was what git knows of them."""
    return f"changed by others: {listed(paths) or 'the state of the repository'}"


def left_name(step: str, paths: Sequence[str]) -> str:
    """In place nothing is undone because a step failed, was cut off or only had to look: what it
    left behind is a step too."""
    return f"left by {step}: {listed(paths) or 'the state of the repository'}"


_INSTALLS = {
    "package-lock.json": "npm ci",
    "npm-shrinkwrap.json": "npm ci",
    "pnpm-lock.yaml": "pnpm install --frozen-lockfile",
    "yarn.lock": "yarn install",
    "requirements.txt": "pip install -r requirements.txt",
    "poetry.lock": "poetry sync",
    "uv.lock": "uv sync",
    "Pipfile.lock": "pipenv sync",
    "Gemfile.lock": "bundle install",
    "composer.lock": "composer install",
    "Cargo.lock": "cargo build",
    "go.sum": "go mod download",
}


def to_install(paths: Sequence[str]) -> list[str]:
    """What is installed does not go back with the file that says what is to be."""
    found = ((path, _INSTALLS.get(path.rpartition("/")[2])) for path in sorted(paths))
    return [f"{path} went back: {command}" for path, command in found if command]
