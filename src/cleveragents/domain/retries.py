"""When a failed step may be tried again, and how long to wait before that."""

from cleveragents.domain.action import ToolSpec
from cleveragents.domain.errors import (
    PathOutsideSandboxError,
    ToolArgumentError,
    ToolError,
    ToolNotConfinedError,
    ToolNotEndedError,
    ToolNotFoundError,
    ToolRefusedError,
    ToolWroteError,
)

# The same call would be refused in the same way, or would not be alone.
_POINTLESS = (
    PathOutsideSandboxError,
    ToolArgumentError,
    ToolNotConfinedError,
    ToolNotEndedError,
    ToolNotFoundError,
    ToolRefusedError,
    ToolWroteError,
)
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


def may_retry(spec: ToolSpec, error: ToolError, *, captured: bool) -> bool:
    """`captured`: every sandbox can be put back to where the step began."""
    if isinstance(error, _POINTLESS):
        return False
    if spec.idempotent:
        return True
    undoable = not spec.writes or (spec.checkpointable and captured)
    return undoable and not spec.outside_effects


def pause_before(tries: int) -> float:
    """Seconds to wait after so many tries have failed: longer each time, but never long."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (tries - 1))
