"""A day as people read it: every answer fits its terminal, and says nothing that only programs do.

What is typed has no id in it: names and numbers are enough. JSON is compared elsewhere.
"""

import json
import re
import sqlite3
from contextlib import closing
from typing import NamedTuple

import pytest
from rich.cells import cell_len
from tests.support.world import World, action, shell, write

from cleveragents.cli.views.words import STATE_WORDS

# In a path it is part of the name of a folder, and has to be whole.
ULID = re.compile(r"(?<![\w/])[0-7][0-9A-HJKMNP-TV-Z]{25}(?![\w/])")
EXACT = re.compile(r"\b(queued|processing|errored|constrained|strategize)\b")
OF_CODE = re.compile(
    r"\b(cp|ULID|None|null|Traceback|[a-z]+_(id|ids|json|hash|index)|tool_invocation|subplan_spawn"
    r"|prompt_definition|implementation_choice|uow|enum|Struct|dict)\b"
)
PATCH = re.compile(r"[-+@ ]|diff |index |new file|deleted file|table ")


HALF_WAY = "plan resume"
TYPED = [
    *("action check good.yaml", "config list", "config get pager", "config set pager off"),
    *("config unset pager", "tool list", "tool show file.write", "plan list"),
    *(f"plan {line}" for line in ("use good.yaml", "status", "execute", "status", "tree", "diff")),
    *(f"plan checkpoint {line}" for line in ("list", "list --all", "show 2", "verify", "diff 0 2")),
    *("plan list", "plan checkpoint prune --dry-run", "plan checkpoint create --label mine"),
    *(f"plan {line}" for line in ("show 1", "show 4", "explain 2", "artifacts", "errors")),
    *("plan effects", "plan rollback --dry-run 1", "plan rollback --yes 1", "plan checkpoint list"),
    *("plan status", HALF_WAY, "plan checkpoint list", "plan tree --show-superseded"),
    *("plan apply --yes", "plan status", "plan show 2"),
    *(f"plan {line}" for line in ("use bad.yaml", "execute", "status", "errors", "list")),
    *("plan apply --yes", "plan show 2"),
    *(f"plan {line}" for line in ("use family.yaml", "execute", "status", "errors", "list --all")),
    *("plan tree", "plan cancel", "store status", "store verify", "doctor"),
    *("plan rollback", "plan show 9"),
    *("plan use good.yaml", "plan execute", "plan resume --dry-run", "plan prompt more"),
    *("plan checkpoint prune --yes", "plan discard --yes", "prune --older-than 0m --dry-run"),
    *("prune --older-than 0m --yes", "uninstall --dry-run", "uninstall --yes"),
]
# Progress is sparse where nobody watches: one line when something is gone on with.
PROGRESS = "resumed: "


# For each line that is typed, what its last answer must say.
MUST = {
    "action check good.yaml": ["1 write the page file.write", "4 a row", "agents plan use"],
    "config list": ["pager on", "sandbox.checkpoint.max-checkpoints-per-plan 50 default"],
    "config get pager": ["on", "default", "$AGENTS_PAGER"],
    "config set pager off": ["pager is set in"],
    "config unset pager": ["it is on now, from: default"],
    "tool list": ["file.write yes", "agents tool show NAME"],
    "tool show file.write": ["Write a whole file", "content", "steps:"],
    "plan use good.yaml": ["good-2", "next: agents plan execute"],
    "plan use bad.yaml": ["bad-1", "git-checkout"],
    "plan use family.yaml": ["family-1", "next: agents plan execute"],
    "plan status": ["family-1", "failed", "Conflict: code:same.md", "agents plan resume --ours"],
    "plan execute": ["step 4", "agents plan errors", "agents plan resume"],
    "plan resume": ["good-1 is finished", "next: agents plan apply"],
    "plan resume --dry-run": ["step 4 of 4, a row", "nothing was changed"],
    "plan prompt more": ["step 4", "agents plan errors"],
    "plan diff": ["code:gen/", "code:./", "25 added", "+new"],
    "plan tree": ["family-1", "1 subplans: both", "de, conflict"],
    "plan tree --show-superseded": ["superseded", "say newer"],
    "plan show 1": ["good-1 step 1", "new.txt", "+new", "wrote 4 bytes"],
    "plan show 2": ["bad-1 step 2", "failed", "exit code 3", "no file changed"],
    "plan show 4": ["insert into t", "+ (2, 'two')"],
    "plan show 9": ["there is no decision 9", "agents plan tree"],
    "plan explain 2": ["shell", "tool invocation", "the action file says so"],
    "plan artifacts": ["file.write", "code:gen/1, 24 more", "Output of step 1"],
    "plan effects": ["no step has reached outside its sandboxes"],
    "plan errors": ["de", "conflict", "agents plan correct 1"],
    "plan rollback": ["is cancelled", "agents plan use"],
    "plan rollback --dry-run 1": ["Preview", "gen/", "25 removed", "nothing was changed"],
    "plan rollback --yes 1": ["Rollback Summary", "Changes Reverted", "Impact",
                              "later decisions", "Post-Rollback State",
                              "undo it: agents plan rollback "],
    "plan correct 1 --dry-run --step-file step.yaml -g say newer":
        ["Preview", "is corrected", "The step that would take its place", "Nothing was changed"],
    "plan correct 1 --yes --step-file step.yaml -g say newer":
        ["3 steps done again", "agents plan diff --correction", "undo it", "agents plan apply"],
    "plan apply --yes": ["bad-1", "has not done all its steps"],
    "plan list": ["bad-1", "1 of 2 failed", "here", "without a name, commands take bad-1"],
    "plan list --all": ["family-1", "good-1", "applied", "failed", "here"],
    "plan cancel": ["family-1", "is cancelled", "agents plan discard"],
    "plan discard --yes": ["good-2", "is removed", "no snapshots any more"],
    "plan checkpoint list": ["4", "● here", "back to one: agents plan rollback 3"],
    "plan checkpoint list --all": ["decision 1: write", "start", "● here"],
    "plan checkpoint show 2": ["after shell", "go back to it: agents plan rollback 2"],
    "plan checkpoint verify": ["13 checkpoints verified", "can be restored"],
    "plan checkpoint diff 0 2": ["From start to", "code:new.txt added"],
    "plan checkpoint create --label mine": ["checkpoint 'mine' created"],
    "plan checkpoint prune --dry-run": ["decision 1: write the page", "nothing to prune"],
    "plan checkpoint prune --yes": ["the plan stands on it", "nothing to prune"],
    "store status": ["good-1", "sandboxes", "get room back: agents prune"],
    "store verify": ["verified: all of it can be restored"],
    "doctor": ["everything is in order"],
    "prune --older-than 0m --dry-run": ["Would be removed", "family-1", "nothing was changed"],
    "prune --older-than 0m --yes": ["3 plans removed"],
    "uninstall --dry-run": ["data folder", "bad-1", "Would be lost", "nothing was changed"],
    "uninstall --yes": ["are removed", "pip uninstall cleveragents"],
}  # fmt: skip


class Said(NamedTuple):
    typed: str
    code: int
    out: str
    err: str


def day(world: World, format: str, columns: int) -> list[Said]:
    """What a person types, and reads."""
    agents = world.agents.having(COLUMNS=str(columns), LINES="30")
    said: list[Said] = []

    def typed(line: str, *last: str) -> None:
        words = [*line.split(), *last]
        answer = agents.inside("--format", format, *words)
        said.append(Said(" ".join(words), answer.code, answer.out, answer.err))

    _files(world)
    for line in TYPED:
        typed(line)
        if line == HALF_WAY:
            for flag in ("--dry-run", "--yes"):
                typed(f"plan correct 1 {flag} --step-file step.yaml -g", "say newer")
    return said


def _files(world: World) -> None:
    with closing(sqlite3.connect(world.top / "app.db")) as database:
        database.executescript("create table t (id integer primary key, text);")
    resources = {"code": {"type": "git-checkout", "path": "."},
                 "db": {"type": "sqlite", "path": str(world.top / "app.db")}}  # fmt: skip
    row = {"name": "a row", "tool": "sql.execute",
           "with": {"resource": "db", "sql": "insert into t values (2, 'two')"}}  # fmt: skip
    many = "mkdir gen; for n in $(seq 25); do echo $n > gen/$n; done"
    steps = [
        dict(write("new.txt", "new\n", "write the page")),
        shell("echo more >> README.md", "add what a reader of the page would want to know of it"),
        shell(many, "generate"),
        row,
    ]
    _write(world, "good.yaml", action(*steps, name="good", resources=resources))
    gate = shell("echo 'no gate' >&2; exit 3", "pass the gate")
    _write(world, "bad.yaml", action(write("half.txt", "half\n"), gate, name="bad"))
    plans = [{"name": name, "steps": [write("same.md", name)]} for name in ("en", "de")]
    spawn = {"name": "both", "subplans": {"parallel": True, "max_parallel": 1, "plans": plans}}
    _write(world, "family.yaml", action(spawn, name="family"))
    step = dict(write("new.txt", "newer\n", "write the page"))
    (world.project.path / "step.yaml").write_text(json.dumps(step))


def _write(world: World, name: str, content: object) -> None:
    (world.project.path / name).write_text(json.dumps(content))


@pytest.fixture(scope="module", params=[("rich", 100), ("plain", 100), ("rich", 80), ("rich", 120)],
                ids=lambda p: f"{p[0]}-{p[1]}")  # fmt: skip
def told(
    request: pytest.FixtureRequest, template: World, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, int, list[Said]]:
    format, columns = request.param
    world = World(tmp_path_factory.mktemp("people") / "w", template)
    return format, columns, day(world, format, columns)


def test_no_id_is_shown_that_nobody_would_type(told: tuple[str, int, list[Said]]) -> None:
    shown = [(s.typed, line) for s in told[2] for line in (s.out + s.err).splitlines()]
    assert [(typed, line) for typed, line in shown if ULID.search(line)] == []


def test_no_word_for_a_state_is_one_of_programs(told: tuple[str, int, list[Said]]) -> None:
    shown = [(s.typed, line) for s in told[2] for line in (s.out + s.err).splitlines()]
    assert [(typed, line) for typed, line in shown if EXACT.search(line)] == []


def test_every_line_fits_its_terminal(told: tuple[str, int, list[Said]]) -> None:
    format, columns, said = told
    if format == "plain":
        pytest.skip("it goes to pipes and screen readers, and is never cut")
    wide = [(s.typed, line) for s in said for line in (s.out + s.err).splitlines()
            if cell_len(line) > columns and not PATCH.match(line)
            and not line.startswith(PROGRESS)]  # fmt: skip
    assert wide == []


def test_a_list_is_not_longer_than_it_has_to_be(told: tuple[str, int, list[Said]]) -> None:
    """One line of frame above, one for the columns, a row each, and what to type."""
    first = next(s for s in told[2] if s.typed == "plan checkpoint list")
    assert len(first.out.splitlines()) == 2 + 5 + 1
    assert "● here" in first.out
    assert "agents plan rollback 3" in first.out


def test_no_word_is_one_that_only_the_code_has(told: tuple[str, int, list[Said]]) -> None:
    """Keys of the JSON and names of classes; the glossary has the words."""
    shown = [(s.typed, line) for s in told[2] for line in (s.out + s.err).splitlines()
             if not PATCH.match(line) or line.startswith("  ")]  # fmt: skip
    assert [(typed, line) for typed, line in shown if OF_CODE.search(line)] == []


def test_only_what_was_done_has_a_tick(told: tuple[str, int, list[Said]]) -> None:
    looks = re.compile(
        r"--dry-run|^plan (status|list|tree|diff|show|explain|errors|artifacts)|list$"
    )
    ticked = [s.typed for s in told[2] if looks.search(s.typed) and "✓" in s.out + s.err]
    assert ticked == []


def test_each_answer_says_what_it_is_for(told: tuple[str, int, list[Said]]) -> None:
    by_line = {s.typed: s for s in told[2]}
    assert by_line.keys() == MUST.keys(), "each has to say something"
    said = {line: " ".join((by_line[line].out + by_line[line].err).split()) for line in MUST}
    missing = [(line, text) for line, texts in MUST.items() for text in texts
               if text not in said[line]]  # fmt: skip
    assert missing == []


def test_states_are_of_the_table_in_the_glossary(told: tuple[str, int, list[Said]]) -> None:
    lists = [s for s in told[2] if s.typed == "plan list"]
    words = "|".join(STATE_WORDS)
    for said in lists:
        rows = [
            line for line in said.out.splitlines() if re.search(r"\b(good|bad|family)-1\b", line)
        ]
        assert all(re.search(rf" ({words}) ", row) for row in rows if " of " in row), said.out


@pytest.mark.parametrize("format", ["rich", "table"])
def test_a_terminal_of_twenty_columns_is_served_too(world: World, format: str) -> None:
    _files(world)
    narrow = world.agents.having(COLUMNS="20", LINES="10")
    for line in ("use good.yaml", "execute", "status", "checkpoint list", "tree", "list", "errors"):
        answer = narrow.inside("--format", format, "plan", *line.split()).ok()
        assert all(cell_len(text) <= 20 for text in answer.out.splitlines()), answer.out
