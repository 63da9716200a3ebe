"""Owns what can go wrong with correcting a decision."""

from cleveragents.domain.errors.base import PlanError


class CorrectionNotFoundError(PlanError):
    code = "correction-not-found"

    def __init__(self, correction_id: str) -> None:
        super().__init__(
            f"there is no correction {correction_id}",
            "see the corrections of a decision with `agents plan explain <DECISION_ID>`",
        )


class CorrectionRefusedError(PlanError):
    """A decision that cannot be corrected, with the reason; nothing was changed."""

    code = "correction-refused"
