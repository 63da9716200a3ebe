"""What is wrong with a call itself."""

from collections.abc import Sequence

from cleveragents.domain.errors.base import UsageError


class InvalidIdError(UsageError, code="invalid-id"):
    def __init__(self, kind: str, text: str) -> None:
        super().__init__(
            f"{text!r} is not a {kind}: expected 26 letters and digits",
            "see the ids with `agents plan list` and `agents plan tree latest`; of a plan's id"
            " the first six letters are enough, and `latest` is the last one made of the place you"
            " are in",
        )


class CheckpointRequiredError(UsageError, code="checkpoint-required"):
    def __init__(self, plan_id: str, available: Sequence[str]) -> None:
        listing = "\n".join(f"  {line}" for line in available) or "  (none yet)"
        super().__init__(
            f"say which checkpoint of plan {plan_id} you mean. There are:\n{listing}",
            "name it by its number, or by the letters before its name; all of them:"
            f" agents plan checkpoint list {plan_id}",
        )


class LabelIsNumberError(UsageError):
    """A label that would be taken for the number of a step."""

    code = "label-is-a-number"

    def __init__(self, label: str) -> None:
        super().__init__(
            f"{label!r} would be taken for a step: numbers name the states that steps have left",
            "choose another --label, with a letter in it",
        )


class ConfigKeyError(UsageError, code="unknown-config-key"):
    def __init__(
        self, key: str, where: str, suggestion: str | None, hint: str | None = None
    ) -> None:
        meant = f"; did you mean `{suggestion}`?" if suggestion else ""
        super().__init__(
            f"unknown config key `{key}` in {where}{meant}",
            hint or "see all keys with `agents config list`",
        )


class ConfigValueError(UsageError, code="invalid-config-value"):
    def __init__(self, key: str, where: str, problem: str, hint: str | None = None) -> None:
        super().__init__(
            f"`{key}` in {where}: {problem}",
            hint or f"set it with `agents config set {key} <VALUE>`",
        )


class ConfigFileError(UsageError, code="config-file"):
    """A config file that cannot be read or written."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "correct that file, or use another one with --config-path")


class ConfirmationNeededError(UsageError, code="confirmation-needed"):
    def __init__(self, operation: str) -> None:
        super().__init__(
            f"{operation} needs a confirmation, and there is no terminal to ask on",
            "repeat the command with --yes",
        )
