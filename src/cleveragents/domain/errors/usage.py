"""What is wrong with a call itself."""

from collections.abc import Sequence

from cleveragents.domain.errors.base import UsageError


class InvalidIdError(UsageError):
    code = "invalid-id"

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(
            f"{text!r} is not a {kind}: expected 26 letters and digits",
            "see the ids with `agents plan list` and `agents plan tree latest`; of a plan's id"
            " the first six letters are enough, and `latest` is the last one made of the place you"
            " are in",
        )


class CheckpointRequiredError(UsageError):
    code = "checkpoint-required"

    def __init__(self, plan_id: str, available: Sequence[str]) -> None:
        listing = "\n".join(f"  {line}" for line in available) or "  (none yet)"
        super().__init__(
            f"say which checkpoint plan {plan_id} shall go back to. There are:\n{listing}",
            f"agents plan rollback {plan_id} <CHECKPOINT_ID>",
        )


class ConfigKeyError(UsageError):
    code = "unknown-config-key"

    def __init__(self, key: str, where: str, suggestion: str | None) -> None:
        meant = f"; did you mean `{suggestion}`?" if suggestion else ""
        super().__init__(
            f"unknown config key `{key}` in {where}{meant}",
            "see all keys with `agents config list`",
        )


class ConfigValueError(UsageError):
    code = "invalid-config-value"

    def __init__(self, key: str, where: str, problem: str) -> None:
        super().__init__(
            f"`{key}` in {where}: {problem}", f"set it with `agents config set {key} <VALUE>`"
        )


class ConfigFileError(UsageError):
    """A config file that cannot be read or written."""

    code = "config-file"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "correct that file, or use another one with --config-path")


class ConfirmationNeededError(UsageError):
    code = "confirmation-needed"

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"{operation} needs a confirmation, and there is no terminal to ask on",
            "repeat the command with --yes",
        )
