"""The root command and the one place where errors become output and exit codes."""

import atexit
import gc
import os
import sys
from collections.abc import Sequence

import click

from cleveragents import __version__
from cleveragents.cli import streams
from cleveragents.cli.framework import LazyGroup, examples

# Python's own 700 would go over all that a command has read some ten times while it reads a long
# plan; with so many, everything is looked at twice, however much there is.
_VALUES_PER_COLLECTION = 20_000
_COMMANDS = "cleveragents.cli.commands"


@click.group(
    "agents",
    cls=LazyGroup,
    lazy={
        "plan": (f"{_COMMANDS}.plan:plan", "Make, run, roll back and apply plans"),
        "store": (f"{_COMMANDS}.store:store", "See and check what is stored for all plans"),
        "doctor": (f"{_COMMANDS}.doctor:doctor", "Find and mend what crashes have left behind"),
        "config": (f"{_COMMANDS}.config:config", "Read and change the settings"),
        "action": (f"{_COMMANDS}.action:action", "Check action files; their JSON Schema"),
        "tool": (f"{_COMMANDS}.tool:tool", "See the tools that steps can use"),
        "completion": (f"{_COMMANDS}.completion:completion", "Let a shell complete what you type"),
        "hook": (f"{_COMMANDS}.hook:hook", "For coding agents: tell the plan what happens"),
    },
    epilog=examples(
        "agents plan use add-login.yaml  # makes a plan and says its id",
        "agents plan execute latest  # in sandboxes, with a checkpoint at every decision",
        "agents plan checkpoint list latest  # where you can go back to",
        "agents plan rollback latest 'before shell run the generator'",
        "agents plan apply latest  # brings the result into your project",
    )
    + "\n\nExit codes: 0 done, 1 refused or failed, 2 wrong call, 130 interrupted.",
)
@click.option("--data-dir", metavar="DIR", help="Where plans, sandboxes and snapshots are kept.")
@click.option("--config-path", metavar="FILE", help="Use this instead of the global config file.")
@click.option("-v", "--verbose", count=True, help="Say on stderr what happens.")
@click.version_option(__version__, prog_name="agents")
@click.pass_context
def root(ctx: click.Context, data_dir: str | None, config_path: str | None, verbose: int) -> None:
    """Run agents' plans in sandboxes, with a checkpoint at every decision, and go back to any."""
    from cleveragents.cli.app import App  # noqa: PLC0415 - `--help` must not pay for it

    app: App = ctx.find_object(App) or App()
    app.use_options(data_dir=data_dir, config_path=config_path, verbose=verbose)
    ctx.obj = app
    ctx.call_on_close(app.close)


def main() -> None:
    atexit.register(_let_the_exit_code_stand)  # first, and so the last to be called
    streams.take()
    gc.set_threshold(_VALUES_PER_COLLECTION)
    code = run(sys.argv[1:])
    # All that has to be closed is closed. What the interpreter would now look through for cycles,
    # several times, goes with the process.
    gc.freeze()
    if "signal" not in sys.modules:  # `--help` has none to heed, and must not pay for it
        sys.exit(code)
    from cleveragents.cli.interruptions import leave_with  # noqa: PLC0415 - as above

    leave_with(code)
    sys.exit(code)


def _let_the_exit_code_stand() -> None:
    """What the interpreter still takes down is nobody's; a signal would only spoil the answer."""
    if "signal" in sys.modules:
        import signal  # noqa: PLC0415 - as above

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


def run(argv: Sequence[str]) -> int:
    """Run one command line; gives back the exit code, when all that was said is heard."""
    asked = os.environ.get("_AGENTS_COMPLETE")
    if asked and not argv:
        return _completed(asked)
    if not argv or argv[-1] == "--help" or argv == ["--version"]:
        # Nothing here can fail in a way that needs our renderers, so they are not imported.
        return _help(argv)
    from cleveragents.cli.guard import guarded  # noqa: PLC0415 - `--help` must not pay for it

    return guarded(root, argv)


def _completed(asked: str) -> int:
    from cleveragents.cli.completion import answer  # noqa: PLC0415 - when Tab is pressed

    try:
        code = answer(root, asked)
        sys.stdout.flush()
    except streams.OutputLostError as lost:
        return _lost(lost)
    return code


def _help(argv: Sequence[str]) -> int:
    try:
        root.main(list(argv) or ["--help"], prog_name="agents", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except streams.OutputLostError as lost:
        return _lost(lost)
    return 0


def _lost(lost: streams.OutputLostError) -> int:
    from cleveragents.cli.app import App  # noqa: PLC0415 - `--help` must not pay for it

    return App().lost(lost)
