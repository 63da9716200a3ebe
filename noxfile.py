"""The checks; bare `nox`, like CI, runs all that do not measure time, in the caller's venv."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

import nox

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # for `tests.support`

from tests.support.long_sessions import bench
from tests.support.parts import COMMANDED, ONCE, ORDINARY, REPORTS, files_at

nox.options.sessions = ["lint", "imports", "suites", "coverage", "counts"]
# Each uses one core only: one by one, while pytest waits for processes and clocks.
BESIDE = ("robot", "features", "site")
nox.options.default_venv_backend = "none"
nox.options.error_on_missing_interpreters = False

# Thousands of small worlds are made and thrown away: in memory, where there is room for them, which
# saves half of the time. What is proved about disks is proved by kills and order, not by waiting.
MEMORY = pathlib.Path("/dev/shm")
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("TMPDIR", str(MEMORY))
# One more than cores: a test that waits for a process or a clock leaves its core to another.
WORKERS = str(len(os.sched_getaffinity(0)) + 1)


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
        files_at("**/test_*.py")
        - files_at("power")
        - (files_at(*ONCE) if os.geteuid() == 0 else set())
    )
    first = files_at(*COMMANDED)
    parts = {"command": sorted(files & first), "rules": sorted(files - first)}
    if session.posargs:
        parts = {"pytest": session.posargs}
    good = [_measured(session, name, *args) for name, args in parts.items()]
    if not all(good):
        session.error("not all tests passed")


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
        *(session.posargs or sorted(files_at(*ORDINARY))),
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
