"""Makes what the documentation takes from the code; `--check` only says whether it is stale.

A block is what stands between `<!-- generated:NAME -->` and `<!-- end -->`.
"""

import json
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import click
import json_reference
import layers
from diagrams import PICTURES

from cleveragents.cli.guard import BugError
from cleveragents.cli.main import root
from cleveragents.domain.checkpoint import DEFAULT_TRIGGERS, TRIGGER_ALIASES, Trigger
from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.actionfile.json_schema import action_json_schema
from cleveragents.infrastructure.database.schema import SCHEMA
from cleveragents.infrastructure.tools.builtin.specs import BUILT_IN

DOCS = Path(__file__).resolve().parent
REFERENCE = DOCS / "reference"
BLOCK = re.compile(r"(<!-- generated:(?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
HELP_WIDTH = 88
MEANINGS = {
    0: "done",
    1: "the operation was refused or failed; nothing is half done",
    2: "the call itself was wrong",
    130: "interrupted; the running step was undone",
}


def main() -> None:
    wanted = {**pages(), **whole_files()}
    stale = [path for path, text in wanted.items() if not _is_fresh(path, text)]
    names = [str(path.relative_to(DOCS)) for path in stale]
    if "--check" not in sys.argv[1:]:
        for path in stale:
            path.write_text(wanted[path], encoding="utf-8")
            sys.stdout.write(f"updated {path.relative_to(DOCS)}\n")
    elif stale:
        sys.exit(f"stale: {', '.join(names)}; run `python docs/generate.py`")


def pages() -> Mapping[Path, str]:
    """Pages with blocks in them, as they should be."""
    blocks = {
        "commands.md": {"commands": commands()},
        "errors.md": {"exit-codes": exit_codes(), "errors": error_table()},
        "checkpointing.md": {"triggers": triggers()},
        "json.md": {"json": json_reference.reference()},
        "database.md": tables(),
    }
    found = {REFERENCE / name: filled(REFERENCE / name, given) for name, given in blocks.items()}
    walks = DOCS / "architecture.md"
    return {**found, walks: filled(walks, {"packages": layers.packages()})}


def whole_files() -> Mapping[Path, str]:
    schema = json.dumps(action_json_schema(BUILT_IN), indent=2)
    pictures = {**PICTURES, "architecture": layers.picture}
    drawn = {DOCS / f"images/{name}.svg": make().svg() for name, make in pictures.items()}
    return {REFERENCE / "action.schema.json": f"{schema}\n", **drawn}


def filled(path: Path, blocks: Mapping[str, str]) -> str:
    """The page with its blocks as they should be. Every block must have its place, and only one."""
    text = path.read_text(encoding="utf-8")
    places = [found["name"] for found in BLOCK.finditer(text)]
    if sorted(places) != sorted(blocks):
        sys.exit(f"{path.name} has places for {sorted(places)}, but needs {sorted(blocks)}")
    return BLOCK.sub(lambda found: f"{found[1]}{blocks[found['name']]}\n{found[3]}", text)


def commands() -> str:
    sections = (
        f"### {path}\n\n```text\n{text}\n```" for path, text in _helps(root, "agents", None)
    )
    return "\n\n".join(sections)


def exit_codes() -> str:
    rows = [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| exit code | meaning |", "|--:|---|", *rows])


def error_table() -> str:
    rows = [f"| [{e.code}](#{e.code}) | {e.exit_code} |" for e in error_classes()]
    return "\n".join(["| code | exit code |", "|---|--:|", *rows])


def error_classes() -> list[type[PlanError]]:
    """One class per code, in the order of the codes."""
    found = {kind.code: kind for kind in (PlanError, *_subclasses(PlanError), BugError)}
    return [found[code] for code in sorted(found)]


def triggers() -> str:
    aliases = {trigger: alias for alias, trigger in TRIGGER_ALIASES.items()}
    rows = [
        f"| `{trigger}` | {f'`{aliases[trigger]}`' if trigger in aliases else ''} "
        f"| {'yes' if trigger in DEFAULT_TRIGGERS else 'no'} |"
        for trigger in Trigger
    ]
    return "\n".join(["| trigger | also called | in the default |", "|---|---|---|", *rows])


def tables() -> Mapping[str, str]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        names = [
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")
        ]
        return {name: _table_rows(db, name) for name in names}


def _is_fresh(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def _helps(
    command: click.Command, path: str, parent: click.Context | None
) -> Iterator[tuple[str, str]]:
    context = click.Context(
        command, info_name=path.rpartition(" ")[2], parent=parent, terminal_width=HELP_WIDTH
    )
    yield path, command.get_help(context).rstrip()
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _helps(inner, f"{path} {name}", context)


def _subclasses(kind: type[PlanError]) -> Iterator[type[PlanError]]:
    """Parents first, so that a child without a code of its own does not stand for its parent's."""
    for inner in kind.__subclasses__():
        if "code" in vars(inner):
            yield inner
        yield from _subclasses(inner)


def _table_rows(db: sqlite3.Connection, table: str) -> str:
    targets = {
        row[3]: f"→ {row[2]}.{row[4]}" for row in db.execute(f"PRAGMA foreign_key_list({table})")
    }
    rows = ["| column | type | may be null | key |", "|---|---|---|---|"]
    for _, name, type_name, not_null, _, primary in db.execute(f"PRAGMA table_info({table})"):
        keys = [*(["primary"] if primary else []), *([targets[name]] if name in targets else [])]
        nullable = "no" if not_null or primary else "yes"
        rows.append(f"| `{name}` | {type_name.lower()} | {nullable} | {', '.join(keys)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
