"""Owns who is compared: each tool with its version and how it is driven, missing ones included."""

import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import cleveragents
from benchmarks.peers import backups, gemini, gitpeers, installs, opencode, ours
from benchmarks.peers.installs import Command
from benchmarks.peers.places import PeerError, Place
from benchmarks.peers.session import Peer, Session

BACKUPS: tuple[tuple[str, tuple[str, ...], type, tuple[str, ...], str], ...] = (
    (
        "restic",
        installs.RESTIC,
        backups.Restic,
        ("version",),
        "`restic backup .` and `restic restore`, `.git` included; what is in the tree is moved"
        " aside before",
    ),
    (
        "borg",
        installs.BORG,
        backups.Borg,
        ("--version",),
        "`borg create` and `borg extract`, without encryption, `.git` included; what is in the"
        " tree is moved aside before",
    ),
    (
        "rsync",
        installs.RSYNC,
        backups.Rsync,
        ("--version",),
        "`rsync -a --delete --modify-window=-1 --link-dest=LAST`, and the other way to go back;"
        " `.git` included",
    ),
)


def roster() -> list[Peer]:
    git = gitpeers.git_version()
    return [
        *_own(),
        _gemini(),
        *_sequences(git),
        *(_backup(*words) for words in BACKUPS),
        Peer(
            key="cp",
            name="cp -a",
            how="a whole copy per snapshot; what is in the tree is moved aside, and the copy"
            " copied back",
            version=_first_number(["cp", "--version"]),
            open=functools.partial(backups.Copies, Command(argv=("cp",))),
        ),
    ]


def _own() -> list[Peer]:
    return [
        Peer(
            key="ours",
            name="CleverAgents in a plan",
            how="its snapshot engine in one process that stays, as in `agents plan execute`: a"
            " restore includes the safety checkpoint that a rollback takes first; all of it is on"
            " disk when the call returns",
            version=cleveragents.__version__,
            open=ours.Engine,
            ours=True,
            judged=False,
        ),
        Peer(
            key="command",
            name="CleverAgents by command",
            how="the installed command: `agents plan checkpoint create` and `agents plan rollback`,"
            " Python's start, the plan's record and a look at every file included",
            version=cleveragents.__version__,
            open=ours.Installed,
            ours=True,
        ),
    ]


def _gemini() -> Peer:
    def make(package: Path) -> Callable[[Place], Session]:
        return functools.partial(gemini.Gemini, package)

    name, how = (
        "Gemini CLI",
        "`GitService` of gemini-cli-core itself, in one node process that stays",
    )
    try:
        package = installs.npm_package(installs.GEMINI)
    except PeerError as error:
        return _absent("gemini", name, how, error)
    version = json.loads((package / "package.json").read_text())["version"]
    return Peer(key="gemini", name=name, how=how, version=version, open=make(package))


def _sequences(git: str) -> list[Peer]:
    return [
        Peer(
            key="opencode",
            name="opencode",
            how="the git commands of its `track`, `patch` and `revert`, since its program can be"
            " asked for snapshots but not for a way back",
            version=f"{installs.OPENCODE.rpartition('@')[2]}, git {git}",
            open=opencode.Opencode,
        ),
        Peer(
            key="shadow",
            name="shadow repository",
            how="`git add -A && git commit` in a second git directory, back with `git clean -fd &&"
            " git reset --hard`: what Cline 3 and Roo Code are built on",
            version=f"git {git}",
            open=gitpeers.ShadowRepository,
        ),
        Peer(
            key="private-ref",
            name="private ref",
            how="`git add -A && git write-tree && git commit-tree` with an index of its own in the"
            " user's repository, back with `git read-tree --reset -u` and `git clean -fd`",
            version=f"git {git}",
            open=gitpeers.PrivateRef,
        ),
        Peer(
            key="stash",
            name="git stash create",
            how="`git stash create`, back with `git reset --hard` and `git stash apply --index`",
            version=f"git {git}",
            open=gitpeers.Stash,
        ),
    ]


def _backup(
    key: str, packages: tuple[str, ...], kind: type, ask: tuple[str, ...], how: str
) -> Peer:
    try:
        command = installs.debian_command(key, packages)
    except PeerError as error:
        return _absent(key, key, how, error)
    version = _first_number([*command.argv, *ask], command.environ)
    return Peer(key=key, name=key, how=how, version=version, open=functools.partial(kind, command))


def _absent(key: str, name: str, how: str, error: PeerError) -> Peer:
    def refuse(_: Place) -> Session:
        raise error

    return Peer(key=key, name=name, how=how, version="", open=refuse, missing=str(error))


def _first_number(argv: list[str], environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environ)
    return next(word for word in done.stdout.split() if word[0].isdigit())
