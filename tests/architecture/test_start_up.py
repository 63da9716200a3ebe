"""Start-up time is a promise: everyday commands do not import what they do not need."""

import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cleveragents.domain.action import Action
from cleveragents.domain.decision import Decision, DecisionType
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.plan import Plan
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.fence import HeldLeases
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory

PLAN = PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
NOW = datetime(2025, 3, 1, tzinfo=UTC)
HEAVY = (
    "rich",
    "pydantic",
    "yaml",
    "tomlkit",
    "zstandard",
    "pydantic_ai",
    "dataclasses",
    "asyncio",
)
# Who only reads records starts nothing, hashes nothing and compares nothing.
FOR_WORK = ("subprocess", "hashlib", "secrets", "difflib", "email", "ssl", "concurrent", "logging")
# Without what measures coverage in every process that a test starts, which loads more than we do.
BARE = {"LANG": "C.UTF-8"}
REPORT = """
import sys
import time
from cleveragents.cli.main import run
code = run(sys.argv[1:]) if len(sys.argv) > 1 else 0
tops = {name.partition(".")[0] for name in sys.modules}
ours = {name for name in sys.modules if name.startswith("cleveragents")}
print(*sorted(tops | ours), file=sys.stderr)
sys.exit(code)
"""


def imported(home: Path, *argv: str) -> tuple[set[str], subprocess.CompletedProcess[str]]:
    """What is loaded after this command line: our modules, and the top-level ones of others."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT, *argv],
        capture_output=True,
        text=True,
        cwd=home,
        env={"HOME": str(home), **BARE},
        check=False,
    )
    return set(done.stderr.splitlines()[-1].split()), done


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With a database in it that has one plan."""
    action = Action(name="demo", description="Do it", resources=(), steps=())
    plan = Plan(plan_id=PLAN, action=action, created_at=NOW)
    root = Decision(
        decision_id=DecisionId(PLAN),
        plan_id=PLAN,
        parent_id=None,
        position=plan.here,
        type=DecisionType.PROMPT_DEFINITION,
        question="",
        chosen="",
        phase=plan.phase,
        step_index=None,
        attempt=1,
        created_at=NOW,
    )
    database = Database(str(tmp_path / ".cleveragents" / "cleveragents.db"))
    with SqlUnitOfWorkFactory(database, HeldLeases())() as uow:
        uow.plans.add(plan)
        uow.decisions.add(root)
        uow.commit()
    return tmp_path


def test_importing_the_command_imports_nothing_heavy(tmp_path: Path) -> None:
    modules, done = imported(tmp_path)

    assert done.returncode == 0
    assert "click" in modules, "the report itself works"
    assert not modules & {*HEAVY, "sqlite3"}


@pytest.mark.parametrize("argv", [["--help"], ["--version"], []])
def test_help_and_version_import_nothing_heavy(tmp_path: Path, argv: list[str]) -> None:
    modules, done = imported(tmp_path, *argv)

    assert done.returncode == 0
    assert not modules & {*HEAVY, "sqlite3"}


@pytest.mark.parametrize(
    ("command", "form"), [("status", "plain"), ("status", "json"), ("tree", "json")]
)
def test_asking_about_a_plan_imports_nothing_heavy(home: Path, command: str, form: str) -> None:
    modules, done = imported(home, "--format", form, "plan", command, PLAN)

    assert done.returncode == 0, done.stdout + done.stderr
    assert (PLAN if form == "json" else "demo-0") in done.stdout
    assert "sqlite3" in modules
    assert not modules & set(HEAVY)


@pytest.mark.parametrize("words", [["plan", "checkpoint", "list"], ["log"]])
def test_who_reads_records_does_not_load_what_works(home: Path, words: list[str]) -> None:
    modules, done = imported(home, *words, PLAN)

    assert done.returncode == 0, done.stdout + done.stderr
    assert not modules & {*HEAVY, *FOR_WORK, "shutil", "tempfile", "ctypes"}


def test_what_a_machine_can_do_is_asked_without_starting_a_program(home: Path) -> None:
    modules, done = imported(home, "plan", "status", PLAN)

    assert done.returncode == 0, done.stdout + done.stderr
    assert not modules & {*FOR_WORK, "signal", "cleveragents.application.ports.runtime"}


def test_a_checkpoint_by_hand_does_not_load_the_tools(home: Path) -> None:
    (home / "folder").mkdir()
    (home / "a.yaml").write_text(
        "{name: a, description: b, resources: {f: {type: fs-directory, path: folder}},"
        " steps: [{tool: file.write, with: {path: a, content: a}}]}"
    )
    for words in (["use", "a.yaml"], ["execute", "--any", "latest"]):
        assert imported(home, "plan", *words)[1].returncode == 0

    command = ["plan", "checkpoint", "create", "--any", "--label", "mine", "latest"]
    modules, done = imported(home, *command)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "cleveragents.application.services.checkpoints.checkpoint_service" in modules
    assert not modules & {"cleveragents.infrastructure.tools.toolbox", "concurrent", "logging"}


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a repository in it, and a plan on that, which has written a file."""
    home = tmp_path_factory.mktemp("worked")
    git = ["git", "-c", "user.name=U", "-c", "user.email=u@example.org", "-C", str(home / "code")]
    (home / "code").mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    (home / "a.yaml").write_text(
        "{name: a, description: b, resources: {f: {type: git-checkout, path: code}},"
        " steps: [{tool: file.write, with: {path: a, content: a}}]}"
    )
    for words in (["use", "a.yaml"], ["execute", "--any", "latest"]):
        assert imported(home, "plan", *words)[1].returncode == 0
    # What was written in the present second is read again, by more modules.
    time.sleep(2.1)
    assert (
        imported(home, "plan", "checkpoint", "create", "--any", "--label", "one")[1].returncode == 0
    )
    return home


@pytest.mark.parametrize(
    ("most_of_ours", "most_of_others", "words"),
    [
        (7, 70, ["--help"]),
        (124, 66, ["plan", "status", "--any"]),
        (127, 66, ["plan", "checkpoint", "list", "--any"]),
        (217, 85, ["plan", "checkpoint", "create", "--any", "--label", "mine"]),
        (253, 85, ["plan", "rollback", "--any", "--yes", "latest", "0"]),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, list) else "",
)
def test_no_command_loads_more_modules_than_it_did(
    worked: Path, most_of_ours: int, most_of_others: int, words: list[str]
) -> None:
    """Each one that is loaded is a tenth of a millisecond and more, and nobody notices the tenth
    one. Who needs a module more raises the number, and takes the time of `benchmarks/startup.py`;
    mostly it can be loaded by the function that needs it."""
    modules, done = imported(worked, *words)

    assert done.returncode == 0, done.stdout + done.stderr
    ours = {name for name in modules if name.startswith("cleveragents")}
    assert len(ours) <= most_of_ours
    assert len(modules - ours) <= most_of_others


def test_making_a_plan_for_a_model_does_not_load_what_asks_it(home: Path) -> None:
    (home / "folder").mkdir()
    action = home / "a.yaml"
    action.write_text(
        "{name: a, description: b, resources: {f: {type: fs-directory, path: folder}},"
        " actor: {type: llm, model: 'openai:gpt-5'}}"
    )

    modules, done = imported(home, "plan", "use", str(action))

    assert done.returncode == 0, done.stdout + done.stderr
    assert not modules & {"pydantic_ai", "openai", "anthropic", "google", "httpx"}


def test_importing_the_python_api_imports_its_records_alone(tmp_path: Path) -> None:
    script = "import sys; from cleveragents import checkpoints, errors; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=BARE,
        check=True,
    )

    modules = set(done.stdout.split())
    ours = {name for name in modules if name.startswith("cleveragents.")}
    assert {name for name in ours if not name.startswith("cleveragents.domain")} == {
        "cleveragents.checkpoints",
        "cleveragents.checkpoints.records",
        "cleveragents.errors",
    }
    assert {name for name in ours if name.startswith("cleveragents.domain.")} <= {
        name for name in ours if name.startswith("cleveragents.domain.errors")
    }
    assert not modules & {*HEAVY, *FOR_WORK, "click", "sqlite3", "pathlib"}
