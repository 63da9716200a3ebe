"""What is on record of an apply to a checkout: enough to carry it out, and to take it back."""

import os
from enum import StrEnum

from msgspec import Struct

from cleveragents.domain.applied import ApplySide
from cleveragents.infrastructure.sandbox.git.trees import text_of


class IgnoredToken(Struct, frozen=True, kw_only=True):
    """`result` is the snapshot that has the new files; `asked` is what was asked for, as far as
    there is something to bring, and `places` where that is: paths for people, the project's own is
    empty. `told` is how much it is, in words."""

    result: str
    asked: tuple[str, ...]
    places: tuple[str, ...]
    told: tuple[str, ...]

    def takes(self, path: str) -> bool:
        """Whether all that was changed at a path, as people read it, comes along."""
        wanted = path.rstrip("/")
        return any(not p or wanted == p or wanted.startswith(f"{p}/") for p in self.places)


class ApplyWay(StrEnum):
    """What a result becomes: a new branch, a commit on the user's one, or files alone."""

    NOTHING = "nothing"
    BRANCH = "branch"
    COMMIT = "commit"
    TREE = "tree"


class SubmoduleStep(Struct, frozen=True, kw_only=True):
    """What is done to the submodule at `path`, which stands at the commit `head`.

    It goes to `commit`, and its files to those of the commit `files`. With a `repository` nothing
    is checked out: that one has the commit, and keeps it.
    """

    path: str
    head: str
    commit: str
    files: str
    repository: str = ""


class NewRepository(Struct, frozen=True, kw_only=True):
    """Of the submodule at `path`: ready at `made`, to come to `place`."""

    path: str
    made: str
    place: str


class CheckoutToken(Struct, frozen=True, kw_only=True):
    """`head` is where the user's checkout stood. `notes` are told once it is applied; `unsigned` is
    why the commit has no signature, if it should.

    With a `side`, an apply is taken back, or brought again: the reference goes from `head` to
    `commit`, each of which may be absent if no checkout stands on it, and files from those of `old`
    to those of `commit`. Going back, the user's own files are those that were kept when the apply
    led to the commit `kept_by`."""

    way: ApplyWay
    head: str
    ref: str = ""
    commit: str = ""
    unsigned: str = ""
    submodules: tuple[SubmoduleStep, ...] = ()
    new_submodules: tuple[NewRepository, ...] = ()
    ignored: IgnoredToken | None = None
    notes: tuple[str, ...] = ()
    side: ApplySide | None = None
    old: str = ""
    kept_by: str = ""


def target_of(token: CheckoutToken) -> str:
    """Where the result would go, and what becomes of work that nobody has committed."""
    branch = text_of(os.fsencode(token.ref.removeprefix("refs/heads/")))
    match token.way:
        case ApplyWay.COMMIT:
            return f"one commit on branch {branch}; what you have not committed stays as it is"
        case ApplyWay.BRANCH:
            return f"one commit on the new branch {branch}; your files and branch stay as they are"
        case ApplyWay.TREE:
            return "into the working tree, without a commit; what you have changed there stays"
        case ApplyWay.NOTHING:
            return "ignored folders alone" if token.ignored else "nothing to bring"
