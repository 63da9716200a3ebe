"""The click plumbing: commands loaded when called, `--format` anywhere, errors as ours."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from cleveragents.domain.errors import MachineError, UsageError

# Every `agents --help` pays for what is imported above, so the rest is imported where it is used.

FORMATS = ("rich", "color", "table", "plain", "json", "yaml")
FORMAT_KEY = "cleveragents.format"
PAGER_KEY = "cleveragents.no-pager"
ANYWHERE_KEY = "cleveragents.anywhere"
FORMAT_VARIABLE = "CLEVERAGENTS_FORMAT"
LATEST = "latest"
"""What a plan is called that is not named."""

# What stands for what in every command's usage line.
ARGUMENTS: Mapping[str, str] = {
    "PLAN_ID": "A plan: its name (`hello-3`), the name of its action for the last one made of it,"
    " its id, or four letters or more of its beginning or ending. Without one: the last made of"
    " the repository or folder you are in, also called `latest`.",
    "CHECKPOINT_ID": "A checkpoint: `0` for the start, `2` for what step 2 left, `-1` for one step"
    " before where the plan stands; a label, a part of it or of a step's name, or an id.",
    "FROM": "The same, of the earlier state.",
    "TO": "The same, of the later state.",
    "STEP": "A step, by its number, a part of its name, or the id of its decision.",
    "DECISION_ID": "A decision: the number of its step, a part of its name, or its id; see `agents"
    " plan tree`.",
    "ACTION.yaml": "An action file.",
    "TASK": "What the agent is to do, in one word for the shell: 'fix the rounding'.",
    "TEXT": "What to tell it.",
    "KEY": "The name of a setting; see `agents config list`.",
    "VALUE": "Its new value.",
    "NAME": "The name of a tool; see `agents tool list`.",
    "SHELL": "bash, zsh or fish.",
}
_EXAMPLES = "Examples:\n"
_MARK = "\0"

LazyCommands = Mapping[str, tuple[str, str]]
"""Command name to (`module.path:attribute`, one line of help)."""


class AsItIs(click.types.StringParamType):
    """What the system has names for, such as a path: any bytes. Other words are text."""


class AgentsCommand(click.Command):
    """A leaf command: takes `--format`, and shows its examples as they are typed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [_format_option(), _pager_option()]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, [_hidden(word) for word in args])
        for name, value in ctx.params.items():
            ctx.params[name] = _seen(value)
        if ctx.resilient_parsing:  # a shell asks; nothing is refused while somebody types
            return rest
        for param in self.params:
            if not isinstance(param.type, AsItIs) and _is_no_text(ctx.params.get(param.name or "")):
                raise click.BadParameter("this is not UTF-8 text", ctx=ctx, param=param)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        # The context is gone by the time an error is shown, so the app keeps the name.
        if ctx.obj is not None:
            ctx.obj.command = command_name(ctx)
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # Not that of our output, which is told apart. click would end here without a word.
            raise _machine_error(error) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        given = [param for param in self.params if isinstance(param, click.Argument)]
        rows = [(name, ARGUMENTS[name]) for name in map(argument_name, given)]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not _write_examples(self.epilog, formatter):
            super().format_epilog(ctx, formatter)


class LazyGroup(click.Group):
    """A group that knows its commands by name and help, and imports one only to run it."""

    command_class = AgentsCommand

    def __init__(
        self,
        *args: Any,
        lazy: LazyCommands | None = None,
        first: tuple[str, Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        """`first` is a heading, and the commands that stand below it, before the others."""
        super().__init__(*args, **kwargs)
        self._lazy: LazyCommands = lazy or {}
        self._first = first
        self.params += [_format_option(), _pager_option(hidden=self.name != "agents")]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click calls it so
        """In the order of use, not of the alphabet."""
        return list(dict.fromkeys([*self._lazy, *self.commands]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = super().get_command(ctx, cmd_name)
        if known is not None or cmd_name not in self._lazy:
            return known
        command = _load(self._lazy[cmd_name][0])
        self.add_command(command, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        looks_like_option = name.startswith("-")
        if looks_like_option or ctx.resilient_parsing or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        raise click.UsageError(_unknown_command(name, self.list_commands(ctx)), ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self._short_help(name)) for name in self.list_commands(ctx)]
        shown = [(name, text) for name, text in rows if text is not None]
        heading, names = self._first or ("", ())
        parts = {
            heading: [(name, text) for name, text in shown if name in names],
            "Commands": [(name, text) for name, text in shown if name not in names],
        }
        for title, part in parts.items():
            if part:
                with formatter.section(title):
                    formatter.write_dl(part)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not _write_examples(self.epilog, formatter):
            super().format_epilog(ctx, formatter)

    def _short_help(self, name: str) -> str | None:
        """None for a hidden command."""
        if name in self._lazy:
            return self._lazy[name][1]
        command = self.commands[name]
        return None if command.hidden else command.get_short_help_str(limit=100).rstrip(".")


def command(*lines: str, name: str | None = None) -> Callable[[Callable[..., Any]], click.Command]:
    """A leaf command that shows `lines` as its examples."""
    return click.command(name, cls=AgentsCommand, epilog=examples(*lines))


def examples(*lines: str) -> str:
    """An epilog that shows `lines` verbatim: never wrapped, so that they can be copied."""
    return _EXAMPLES + "\n".join(f"  {line}" for line in lines)


def argument_name(argument: click.Argument) -> str:
    """As the usage line has it, without the brackets of one that may be left out."""
    return (argument.metavar or argument.human_readable_name).strip("[]")


def chosen_format(ctx: click.Context) -> str | None:
    """What `--format` said; the one nearest to the end of the line wins."""
    return ctx.meta.get(FORMAT_KEY)


def refuses_pager(ctx: click.Context | None) -> bool:
    """Whether `--no-pager` was said."""
    return ctx is not None and bool(ctx.meta.get(PAGER_KEY))


def means_any_place(ctx: click.Context | None) -> bool:
    """Whether `--any` was said."""
    return ctx is not None and bool(ctx.meta.get(ANYWHERE_KEY))


def command_name(ctx: click.Context | None) -> str:
    """`plan rollback`: the command's path without the program's own name."""
    if ctx is None:
        return ""
    return ctx.command_path.removeprefix(ctx.find_root().command_path).strip()


def scan_format(argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The format that was asked for, found without parsing, for when parsing is what failed."""
    found = _known_format(environ.get(FORMAT_VARIABLE, ""))
    words = list(argv)
    words = words[: words.index("--")] if "--" in words else words
    for word, following in pairwise([*words, ""]):
        if word == "--format":
            found = _known_format(following) or found
        elif word.startswith("--format="):
            found = _known_format(word.removeprefix("--format=")) or found
    return found


def to_plan_error(exc: click.ClickException) -> "UsageError":
    """What click refused, as one of our errors, so that it is rendered like every other."""
    from cleveragents.domain.errors import UsageError  # noqa: PLC0415  `--help` does not need it

    ctx = exc.ctx if isinstance(exc, click.UsageError) else None
    path = ctx.command_path if ctx is not None else "agents"
    return UsageError(_message(exc), f"see `{path} --help`")


def _machine_error(error: OSError) -> "MachineError":
    from cleveragents.domain.errors import MachineError  # noqa: PLC0415  as above

    return MachineError(str(error))


def _message(exc: click.ClickException) -> str:
    if isinstance(exc, click.exceptions.NoArgsIsHelpError) and isinstance(
        exc.ctx.command, click.Group
    ):
        names = ", ".join(exc.ctx.command.list_commands(exc.ctx))
        return f"say which command of `{exc.ctx.command_path}` to run: {names}"
    text = exc.format_message().replace(_MARK, "").strip().removesuffix(".")
    # Our own messages start small; a word in capitals, such as an argument's name, stays.
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _unknown_command(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only a typing error needs it

    close = get_close_matches(name, known, n=1)
    meant = f"did you mean `{close[0]}`?" if close else f"there are: {', '.join(known)}"
    return f"no such command `{name}`; {meant}"


def _load(target: str) -> click.Command:
    from importlib import import_module  # noqa: PLC0415  `--help` does not need it

    module, _, attribute = target.partition(":")
    command = getattr(import_module(module), attribute)
    if not isinstance(command, click.Command):
        raise TypeError(f"{target} is not a click command")
    return command


def _format_option() -> click.Option:
    return click.Option(
        ["--format"],
        type=click.Choice(FORMATS, case_sensitive=False),
        expose_value=False,
        callback=_remember_format,
        help="How results are shown.",
    )


def _pager_option(*, hidden: bool = True) -> click.Option:
    """Works anywhere, like `--format`; only the first help page tells of it."""
    return click.Option(
        ["--no-pager"],
        is_flag=True,
        hidden=hidden,
        expose_value=False,
        callback=_remember_pager,
        help="Write long answers as they are.",
    )


def _remember_pager(ctx: click.Context, _param: click.Parameter, value: object) -> None:
    if value:
        ctx.meta[PAGER_KEY] = value


def _remember_format(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    # `meta` is shared by a context and its parents, and the leaf is parsed last, so it overrides.
    if value is not None:
        ctx.meta[FORMAT_KEY] = value


def _hidden(word: str) -> str:
    """`-1` is a number, which click would take for an option; no word that is typed has a NUL."""
    number = word[1:]
    is_one = word[:1] == "-" and number.isascii() and number.isdecimal() and number[0] != "0"
    return _MARK + word if is_one else word


def _seen(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(_seen(item) for item in cast("tuple[object, ...]", value))
    return value.removeprefix(_MARK) if isinstance(value, str) else value


def _is_no_text(value: object) -> bool:
    """Python carries bytes that are no UTF-8 as halves of surrogate pairs, which no file takes."""
    if isinstance(value, tuple):
        return any(_is_no_text(item) for item in cast("tuple[object, ...]", value))
    return isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value)


def _known_format(word: str) -> str | None:
    return word.lower() if word.lower() in FORMATS else None


def _write_examples(epilog: str | None, formatter: click.HelpFormatter) -> bool:
    if not epilog or not epilog.startswith(_EXAMPLES):
        return False
    formatter.write_paragraph()
    formatter.write(f"{epilog}\n")
    return True
