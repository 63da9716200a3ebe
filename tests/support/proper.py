"""What every answer has to be: a result, or an error with a documented code and a hint."""

from collections.abc import Iterator

from tests.support.agents import Answer
from tests.support.promises import ENVELOPE, ERROR
from tests.support.trees import Tree, tree_of
from tests.support.world import World

from cleveragents.domain.errors import PlanError

_BUGS = ("Traceback", "bug in agents", "internal-error", "Exception ignored")
# Nobody works on it: `processing` would be a plan that its own command has left behind.
AT_REST = {"queued", "complete", "errored", "cancelled", "applied", "constrained"}


def _codes(kind: type[PlanError]) -> Iterator[str]:
    yield kind.code
    for below in kind.__subclasses__():
        yield from _codes(below)


# Without `internal-error`: that one is a bug.
CODES = set(_codes(PlanError)) - {"internal-error"}


def is_proper(answer: Answer) -> None:
    """An answer of the promised shape, with a documented code if it is a refusal."""
    has_no_bug(answer)
    assert set(answer.envelope) == ENVELOPE, answer
    assert answer.envelope["exit_code"] == answer.code
    if answer.code:
        assert set(answer.error) == ERROR, answer
        assert answer.error["code"] in CODES, answer
        assert answer.error["hint"].strip(), answer


def has_no_bug(answer: Answer) -> None:
    assert answer.code in (0, 1, 2), answer
    said = answer.out + answer.err
    assert not any(word in said for word in _BUGS), answer


def everything(world: World) -> tuple[list[str], Tree, list[str]]:
    """Records, the project, and the names of all that we keep."""
    data = world.agents.data_dir
    names = [str(p) for p in sorted(data.rglob("*")) if not p.name.endswith(("-wal", "-shm"))]
    return world.records(), tree_of(world.project.path), names
