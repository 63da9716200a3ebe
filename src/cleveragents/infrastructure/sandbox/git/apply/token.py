"""What is on record of an apply to a checkout: enough to carry it out, and to take it back."""

from enum import StrEnum

from msgspec import Struct


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
    why the commit has no signature, if it should."""

    way: ApplyWay
    head: str
    ref: str = ""
    commit: str = ""
    unsigned: str = ""
    submodules: tuple[SubmoduleStep, ...] = ()
    new_submodules: tuple[NewRepository, ...] = ()
    notes: tuple[str, ...] = ()
