"""The root command and the one place where errors become output and exit codes."""

import atexit
import os
import sys
from collections.abc import Sequence

import click

from cleveragents import __version__
from cleveragents.cli import streams
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.lean import load_msgspec

_COMMANDS = "cleveragents.cli.commands"
_EVERY_DAY = ("run", "status", "log", "diff", "undo", "redo", "rewind", "apply", "discard")


@click.group(
    "agents",
    cls=LazyGroup,
    lazy={
        "run": (f"{_COMMANDS}.run:run", "Run any program or coding agent in a sandbox of here"),
        "status": (f"{_COMMANDS}.everyday.short:status", "Show where the plan of here stands"),
        "log": (f"{_COMMANDS}.everyday.looking:log", "Show its steps, and which one is here"),
        "diff": (f"{_COMMANDS}.everyday.looking:diff", "Show what it, or one step, changes"),
        "undo": (
            f"{_COMMANDS}.everyday.undo:undo",
            "Take back the last change; again: one more",
        ),
        "redo": (f"{_COMMANDS}.everyday.undo:redo", "Bring back what was undone"),
        "rewind": (f"{_COMMANDS}.everyday.rewind:rewind", "Pick a step and go back to it"),
        "apply": (f"{_COMMANDS}.everyday.short:apply", "Bring the result into your project"),
        "discard": (f"{_COMMANDS}.everyday.short:discard", "End it, and remove what it holds"),
        "plan": (f"{_COMMANDS}.plan:plan", "Make, run, roll back and apply plans"),
        "store": (f"{_COMMANDS}.store:store", "See and check what is stored for all plans"),
        "prune": (f"{_COMMANDS}.prune:prune", "Remove old plans with all that they hold"),
        "doctor": (f"{_COMMANDS}.doctor:doctor", "Find and mend what crashes have left behind"),
        "config": (f"{_COMMANDS}.config:config", "Read and change the settings"),
        "action": (f"{_COMMANDS}.action:action", "Check action files; their JSON Schema"),
        "tool": (f"{_COMMANDS}.tool:tool", "See the tools that steps can use"),
        "completion": (f"{_COMMANDS}.completion:completion", "Let a shell complete what you type"),
        "uninstall": (
            f"{_COMMANDS}.uninstall:uninstall",
            "Remove everything that agents has made, in every repository",
        ),
        "hook": (f"{_COMMANDS}.hook:hook", "For coding agents: tell the plan what happens"),
    },
    first=("Every day, on the plan of where you are", _EVERY_DAY),
    epilog=examples(
        "agents plan use add-login.yaml  # makes a plan",
        "agents plan execute  # in sandboxes, with a checkpoint at every decision",
        "agents log  # where you can go back to",
        "agents undo  # and `agents redo`; `agents rewind` to pick a step",
        "agents apply  # brings the result into your project",
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
    streams.take()
    if not _only_helps(sys.argv[1:]):
        from cleveragents.cli.own_modules import find_own_modules  # noqa: PLC0415 - as elsewhere

        find_own_modules()
    _leave(run(sys.argv[1:]))


def _leave(code: int) -> None:
    """All that has to be closed is closed, and all that was said is heard. What the interpreter
    would now take down, module by module, goes with the process."""
    if "signal" in sys.modules:  # `--help` has none to heed, and must not pay for it
        from cleveragents.cli.interruptions import leave_with  # noqa: PLC0415 - as above

        leave_with(code)
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - those of libraries
    os._exit(code)


def run(argv: Sequence[str]) -> int:
    """Run one command line; gives back the exit code, when all that was said is heard."""
    asked = os.environ.get("_AGENTS_COMPLETE")
    if asked and not argv:
        return _completed(asked)
    if _only_helps(argv):
        # Nothing here can fail in a way that needs our renderers, so they are not imported.
        return _help(argv)
    load_msgspec()
    from cleveragents.cli.guard import guarded  # noqa: PLC0415 - `--help` must not pay for it

    return guarded(root, argv)


def _only_helps(argv: Sequence[str]) -> bool:
    # What comes after `--` is for the program that `agents run` starts.
    return not argv or (argv[-1] == "--help" and "--" not in argv) or argv == ["--version"]


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
