"""Owns the fidelity score: each case with each tool, and in words what was not as before."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.peers import cases_files, cases_git
from benchmarks.peers.cases import BASE, Case
from benchmarks.peers.observe import State, differences, observe
from benchmarks.peers.places import PeerError, Place
from benchmarks.peers.session import Peer, Session

GROUPS: dict[str, tuple[Case, ...]] = {
    "contents": cases_files.CONTENTS,
    "kinds and modes": cases_files.KINDS,
    "names": cases_files.NAMES,
    "bytes that git rewrites": cases_files.BYTES,
    "repositories inside": cases_git.REPOSITORIES,
    "state of git": cases_git.STATE,
    "hostile set-up": cases_git.HOSTILE,
}
SHOWN = 3


class ScriptError(Exception):
    """A script of a case failed: the tool has no fault in it, and no point for it either."""


def score(peers: Iterable[Peer], folder: Path, workers: int) -> dict[str, dict[str, str]]:
    """For each tool and case an empty text, or what went wrong."""
    present = [peer for peer in peers if peer.judged and not peer.missing]
    tasks = [(peer, case) for peer in present for group in GROUPS.values() for case in group]
    with ThreadPoolExecutor(workers) as pool:
        answers = list(pool.map(lambda task: _verdict(task[0], task[1], folder), tasks))
    found: dict[str, dict[str, str]] = {peer.key: {} for peer in present}
    for (peer, case), answer in zip(tasks, answers, strict=True):
        found[peer.key][case.name] = answer
    return found


def _verdict(peer: Peer, case: Case, folder: Path) -> str:
    top = Path(tempfile.mkdtemp(prefix="case-", dir=folder))
    try:
        wanted, got = _play(peer, case, Place(top, folder / "shared" / peer.key))
    except PeerError as error:
        return f"refused: {error}"
    except ScriptError as error:
        return f"the case could not be played: {error}"
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", str(top)], check=False, capture_output=True)
        shutil.rmtree(top, ignore_errors=True)
    found = differences(wanted, got)
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more


def _play(peer: Peer, case: Case, place: Place) -> tuple[State, State]:
    _shell(place, place.project, BASE)
    with (place.home / ".gitconfig").open("a") as file:
        file.write(case.config)
    session = peer.open(place)
    try:
        _shell(place, session.tree, case.before)
        place.extra.update(
            {name: text.format(outside=place.outside) for name, text in case.environ}
        )
        return _course(case, place, session)
    finally:
        session.close()


def _course(case: Case, place: Place, session: Session) -> tuple[State, State]:
    wanted = observe(place, session.tree)
    refs: list[str] = []
    for step in case.steps:
        refs.append(session.snapshot())
        _shell(place, session.tree, step)
    if not case.forth:
        session.restore(refs[0])
        return wanted, observe(place, session.tree)
    later = observe(place, session.tree)
    refs.append(session.snapshot())
    session.restore(refs[0])
    back = observe(place, session.tree)
    session.restore(refs[-1])
    forth = observe(place, session.tree)
    return {**wanted, **_again(later)}, {**back, **_again(forth)}


def _again(state: State) -> State:
    return {f"{name}, later on,": value for name, value in state.items()}


def _shell(place: Place, tree: Path, script: str) -> None:
    environ = {**place.clean_environ, "OUTSIDE": str(place.outside)}
    environ |= {f"GIT_{who}_{key}": text for who in ("AUTHOR", "COMMITTER") for key, text in NAMED}
    # What a case does to the tree must work, whatever the set-up does to the tools.
    quiet = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "commit.gpgsign"}
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", script],
        cwd=tree,
        env={**environ, **quiet, "GIT_CONFIG_VALUE_0": "false"},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise ScriptError(place.shortened(done.stderr.decode(errors="replace")))


NAMED = (("NAME", "Agent"), ("EMAIL", "agent@example.org"))
