"""What the words for every day ask in place, where others work in the same tree."""

import click

from cleveragents.application.services.rollback.target import RollbackQuestion
from cleveragents.cli.app import App
from cleveragents.cli.views import everyday as views
from cleveragents.domain.errors import ChangedByOthersError

KEEP = click.option(
    "--keep",
    is_flag=True,
    help="In place: leave as it is what others have changed since the last checkpoint.",
)
NOW = click.option(
    "--now", is_flag=True, help="If its program still runs, stop that first, as Ctrl-C would."
)


def agreed(app: App, question: RollbackQuestion, *, keep: bool, yes: bool) -> bool:
    """Whether what others have changed may be taken back too, if there is any.

    Raises ChangedByOthersError where nobody can be asked.
    """
    if keep or yes or not question.others:
        return True
    if not app.can_ask:
        raise ChangedByOthersError(question.others)
    return app.confirm(
        "Take that back too (--keep leaves it as it is)",
        yes=False,
        show=lambda: views.by_others(question.others),
    )
