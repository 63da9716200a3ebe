"""The arguments that commands share: their names, and what a shell offers for them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.framework import ANYWHERE_KEY, AsItIs

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

AS_IT_IS = AsItIs()


def _offering(kind: str) -> Complete:
    def offer(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        from cleveragents.cli.completion import offered  # noqa: PLC0415 - for shells only

        del param
        return offered(kind, ctx, incomplete)

    return offer


def action_file(name: str) -> Callable[..., click.Command]:
    offer = _offering("files")
    return click.argument(name, metavar="ACTION.yaml", type=AS_IT_IS, shell_complete=offer)


def checkpoint(name: str = "checkpoint_id", metavar: str = "CHECKPOINT_ID") -> Decorator:
    """Never required by click: with fewer words than places the plan is the one left out."""
    offer = _offering("checkpoints")
    return click.argument(name, metavar=metavar, required=False, shell_complete=offer)


def _remember_anywhere(ctx: click.Context, _param: click.Parameter, value: object) -> None:
    ctx.meta[ANYWHERE_KEY] = value


def _with_any(argument: Decorator) -> Decorator:
    """A plan, and with it how far names reach."""
    anywhere: Decorator = click.option(
        "--any",
        "anywhere",
        is_flag=True,
        expose_value=False,
        callback=_remember_anywhere,
        help="Let names be of plans of any place, not only of the one you are in.",
    )
    return lambda command: argument(anywhere(command))


def _plan(offered: str) -> Decorator:
    offer = _offering(offered)
    return _with_any(
        click.argument("plan_id", metavar="[PLAN_ID]", required=False, shell_complete=offer)
    )


PLAN = _plan("plans")
PLAN_BEFORE_CHECKPOINT = _plan("plans or checkpoints")
OF_PLAN = _with_any(
    click.option(
        "--plan",
        "plan_id",
        metavar="PLAN_ID",
        shell_complete=_offering("plans"),
        help="Another plan than the latest of where you are.",
    )
)
STEP = click.argument("decision_id", metavar="STEP", shell_complete=_offering("decisions"))
MAYBE_STEP = click.argument(
    "decision_id", metavar="[STEP]", required=False, shell_complete=_offering("decisions")
)
DECISION = click.argument(
    "decision_id", metavar="DECISION_ID", shell_complete=_offering("decisions")
)
KEY = click.argument("key", metavar="KEY", shell_complete=_offering("keys"))
TOOL = click.argument("name", metavar="NAME", shell_complete=_offering("tools"))
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
RESOURCES = click.option(
    "--resource",
    "resources",
    metavar="NAME=PATH",
    type=AS_IT_IS,
    multiple=True,
    help="Work on PATH instead of what the action says. May be repeated.",
)


def overrides(resources: Sequence[str]) -> dict[str, str]:
    """What `--resource` said, by name."""
    return dict(_override(text) for text in resources)


def _override(text: str) -> tuple[str, str]:
    name, separator, path = text.partition("=")
    if not (name and separator and path):
        raise click.UsageError(f"--resource {text!r} is not NAME=PATH")
    return name, path
