"""The commit that an apply makes in the user's name: who made it, and with which signature.

What signs is the user's own program, as settings of the user's repository say, and it reads a
commit of ours: no file that a step wrote. It gets no terminal and not more than a moment: nobody
can be asked for a passphrase here.
"""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.infrastructure.sandbox.git.command import (
    Git,
    GitCall,
    GitError,
    GitResult,
    clean_environment,
)

_PATIENCE_SECONDS = 20.0
# By these a program would find somebody to ask.
_ASKING = ("GPG_TTY", "DISPLAY", "WAYLAND_DISPLAY", "SSH_ASKPASS")


class UserCommit(Struct, frozen=True, kw_only=True):
    """`unsigned` is why it has no signature although the user's own would have one."""

    commit: str
    unsigned: str = ""


def user_commit(git: Git, parent: str, tree: str, message: str) -> UserCommit:
    """Raises ApplyRefusedError if git does not know who commits."""
    identity = _identity(git)
    if not _wants_signature(git):
        return UserCommit(commit=_made(git, identity, message, "-p", parent, tree))
    signing = Git(git.directory, git.env, _start_without_person)
    try:
        return UserCommit(commit=_made(signing, identity, message, "-S", "-p", parent, tree))
    except GitError as error:
        commit = _made(git, identity, message, "-p", parent, tree)
        return UserCommit(commit=commit, unsigned=error.stderr or "the program that signs failed")


def unsigned_note(reason: str, branch: str | None) -> str:
    """For people; `branch` is the one that was asked for, and is not the current one."""
    said = " ".join(reason.split())
    switch = f"git switch {branch} && " if branch else ""
    return (
        "the commit is not signed, although commit.gpgsign is set: that could not be done without"
        f" you ({said}); sign it: {switch}git commit --amend --no-edit -S"
    )


def _wants_signature(git: Git) -> bool:
    asked = ("config", "--type=bool", "--get-all", "commit.gpgsign")
    found = git.run(*asked, check=False).stdout.decode().split()
    # The last one is what we tell every git ourselves.
    return found[:-1][-1:] == ["true"]


def _made(git: Git, identity: Mapping[str, str], message: str, *args: str) -> str:
    text = message.rstrip("\n").encode("utf-8", "replace") + b"\n"
    encoding = ("-c", "i18n.commitEncoding=UTF-8")
    return (
        git.run(*encoding, "commit-tree", *args, input=text, env=identity).stdout.decode().strip()
    )


def _identity(git: Git) -> Mapping[str, str]:
    """What the user's shell says about author and committer; the rest is in their config."""
    prefixes = ("GIT_AUTHOR_", "GIT_COMMITTER_")
    env = {key: value for key, value in os.environ.items() if key.startswith(prefixes)}
    for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        # useConfigOnly: a name guessed from the machine is not an identity.
        args = ("-c", "user.useConfigOnly=true", "var", variable)
        if git.run(*args, env=env, check=False).code != 0:
            raise ApplyRefusedError(
                f"git does not know who commits in {git.directory}",
                'git config --global user.name "Your Name" && '
                "git config --global user.email you@example.com, or apply with --no-commit",
            )
    return env


def _start_without_person(call: GitCall) -> GitResult:
    """In a session of its own, which has no terminal; all of it is ended if it takes too long."""
    env = {key: value for key, value in clean_environment().items() if key not in _ASKING}
    assert isinstance(call.input, bytes)
    process = subprocess.Popen(
        call.argv,
        cwd="/",
        env={**env, **call.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(call.input, timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        _end(process)
        said = f"no signature within {_PATIENCE_SECONDS:.0f} seconds"
        return GitResult(stdout=b"", stderr=said.encode(), code=1)
    except BaseException:
        _end(process)
        raise
    return GitResult(stdout=out, stderr=err, code=process.returncode)


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
