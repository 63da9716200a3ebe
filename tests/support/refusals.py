"""What every refusal has to look like."""

from tests.support.agents import Answer
from tests.support.world import World


def refused(answer: Answer, code: str, exit_code: int = 1) -> str:
    """A clean refusal with this code; gives back everything that it tells people."""
    assert (answer.error["code"], answer.code) == (code, exit_code), answer
    assert answer.envelope["status"] == "error"
    assert answer.envelope["exit_code"] == exit_code
    assert answer.error["hint"].strip()
    assert answer.err == ""
    return f"{answer.error['message']} {answer.error['hint']}"


def nothing_was_created(world: World) -> None:
    """No plan, no sandbox, and nothing of ours in the user's repository."""
    assert world.plan_count() == 0
    assert world.project.traces() == []
    assert list((world.agents.data_dir / "sandboxes").glob("*")) == []
