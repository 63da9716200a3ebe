"""The names that a plan has in the user's repository, all of them pins against gc.

refs/cleveragents/<installation>/plan-<plan>/base/<name>    what the sandbox was made from
refs/cleveragents/<installation>/plan-<plan>/result/<name>  what is being applied
refs/cleveragents/<installation>/plan-<plan>/undo/<name>    by what it is taken back, or again
refs/cleveragents/applied/<plan>/<name>                     what was applied without a commit;
                                                            stays for good

The installation says which data folder has made a pin, and may remove it (ADR 0045): several may
work on one repository, each in a home or container of its own.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from msgspec import Struct

from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.ref_locks import change_ref

OURS = "refs/cleveragents/"
_PIN = rf"{OURS}(?:([0-9a-z]+)/)?plan-([0-9A-HJKMNP-TV-Z]{{26}})/"


def sandbox_branch(resource: PlanResource) -> str:
    """The branch that a sandbox is on, in its own repository."""
    return f"cleveragents/plan-{resource.plan_id}"


class Pins:
    """Those of one installation, which is asked for its name when one is needed."""

    def __init__(self, installation: Callable[[], str]) -> None:
        self._installation = installation

    def base(self, plan_id: PlanId, name: str) -> str:
        return f"{self._of(plan_id)}base/{_part(name)}"

    def result(self, resource: PlanResource) -> str:
        return f"{self._of(resource.plan_id)}result/{_part(resource.name)}"

    def undoing(self, resource: PlanResource) -> str:
        return f"{self._of(resource.plan_id)}undo/{_part(resource.name)}"

    def hold(self, git: Git, resource: PlanResource, commit: str) -> bool:
        """Pin what the sandbox was made from, unless it is; False if git has it no more.

        As long as a pin is there so is its commit, whosever it is: of a copied data folder the
        original's. Somebody may have deleted it.
        """
        plan_id, name = resource.store_id, resource.name
        ref = self.base(plan_id, name)
        if _is_file_with(git, ref, commit):
            return True  # nearly always, and then git need not be asked
        if value_of(git, ref) is not None or is_base(git, plan_id, name, commit):
            return True
        if value_of(git, commit) is None:
            return False
        pin(git, ref, commit)
        return True

    def unpin(self, git: Git, resource: PlanResource) -> None:
        """Of the pins of this resource, and with the last one of all the plan's."""
        delete_ref(git, self.base(resource.plan_id, resource.name))
        delete_ref(git, self.result(resource))
        pins = self._of(resource.plan_id)
        if git.text("for-each-ref", "--format=%(refname)", f"{pins}base/"):
            return
        for ref in git.text("for-each-ref", "--format=%(refname)", pins).split():
            delete_ref(git, ref)

    def are(self, found: "FoundPin") -> bool:
        """Whether it is one of these, as its name says."""
        return found.installation == self._installation()

    def _of(self, plan_id: PlanId) -> str:
        return f"{OURS}{self._installation()}/plan-{plan_id}/"


class FoundPin(Struct, frozen=True, kw_only=True):
    """A pin of whichever installation, or without one. A broken one has no commit."""

    ref: str
    commit: str
    installation: str | None
    plan_id: str


def all_pins(git: Git) -> list[FoundPin]:
    listing = git.text("for-each-ref", "--format=%(refname) %(objectname)", OURS)
    found: list[FoundPin] = []
    for line in (*filter(None, listing.split("\n")), *_broken(git)):
        ref, _, commit = line.partition(" ")
        name = re.match(_PIN, ref)
        if name is not None:  # what was applied without a commit is no pin of a plan
            pin = FoundPin(ref=ref, commit=commit, installation=name[1], plan_id=name[2])
            found.append(pin)
    return found


def is_base(git: Git, plan_id: PlanId, name: str, commit: str) -> bool:
    """Whether any installation has pinned this commit as what the sandbox was made from."""
    end = f"/plan-{plan_id}/base/{_part(name)}"
    return any(pin.ref.endswith(end) and pin.commit == commit for pin in all_pins(git))


def applied_pin(resource: PlanResource) -> str:
    return f"{OURS}applied/{resource.plan_id}/{_part(resource.name)}"


def pin(git: Git, ref: str, commit: str) -> None:
    try:
        change_ref(git, ref, commit, ref, commit)
    except GitError:
        if not _cleared(git, ref):
            raise
        change_ref(git, ref, commit, ref, commit)


def delete_ref(git: Git, ref: str) -> None:
    if value_of(git, ref) is not None:
        # Not `git branch -D`: that rewrites the user's config file.
        change_ref(git, ref, "", "--no-deref", "-d", ref)
    else:
        _cleared(git, ref)


def value_of(git: Git, ref: str) -> str | None:
    """The commit that a reference or name stands for, if there is one."""
    found = git.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", check=False)
    return found.stdout.decode().strip() if found.code == 0 else None


def _is_file_with(git: Git, ref: str, commit: str) -> bool:
    """Whether it is a file, as long as nobody has packed it, of the repository that git runs in."""
    with suppress(OSError), open(os.path.join(git.directory, ref), "rb") as file:
        return file.read() == commit.encode() + b"\n"
    return False


def _broken(git: Git) -> Iterator[str]:
    """References of ours that hold nothing, which git passes over: a power cut has left them."""
    top = _folder(git)
    for folder, _, names in os.walk(os.path.join(top, OURS)):
        for path in (os.path.join(folder, name) for name in names):
            if not path.endswith(".lock") and _is_empty(path):
                yield os.path.relpath(path, top)


def _cleared(git: Git, ref: str) -> bool:
    """Whether it was there and held nothing: git itself can neither replace nor remove it then."""
    path = os.path.join(_folder(git), ref)
    if not _is_empty(path):
        return False
    os.unlink(path)
    return True


def _folder(git: Git) -> str:
    """Where references are files, if they are."""
    return git.text("rev-parse", "--path-format=absolute", "--git-common-dir")


def _is_empty(path: str) -> bool:
    """Or all zeros, as a file may be whose length was written and whose bytes were not."""
    with suppress(OSError), open(path, "rb") as file:
        return not file.read(1 << 12).strip(b"\0\n")
    return False


def _part(name: str) -> str:
    """A resource name as part of a reference, whatever characters it has."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda found: f"%{ord(found[0]):x}", name)
