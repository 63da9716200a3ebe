"""The arguments that commands share: their names, and what a shell offers for them."""

from collections.abc import Callable
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


def checkpoint(
    name: str = "checkpoint_id", metavar: str = "CHECKPOINT_ID", *, required: bool = True
) -> Callable[..., click.Command]:
    offer = _offering("checkpoints")
    return click.argument(name, metavar=metavar, required=required, shell_complete=offer)


def _remember_anywhere(ctx: click.Context, _param: click.Parameter, value: object) -> None:
    ctx.meta[ANYWHERE_KEY] = value


def _with_any(argument: Decorator) -> Decorator:
    """A plan, and with it how far `latest` reaches."""
    anywhere: Decorator = click.option(
        "--any",
        "anywhere",
        is_flag=True,
        expose_value=False,
        callback=_remember_anywhere,
        help="Let `latest` be the last plan made anywhere, not only of the place you are in.",
    )
    return lambda command: argument(anywhere(command))


PLAN = _with_any(click.argument("plan_id", metavar="PLAN_ID", shell_complete=_offering("plans")))
DECISION = click.argument(
    "decision_id", metavar="DECISION_ID", shell_complete=_offering("decisions")
)
KEY = click.argument("key", metavar="KEY", shell_complete=_offering("keys"))
TOOL = click.argument("name", metavar="NAME", shell_complete=_offering("tools"))
