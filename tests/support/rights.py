"""The command `agents` run by one whom modes do stop: root is put into that position too."""

import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest
from tests.support.agents import COMMAND, Agents, Answer

_NO_MORE = "echo 0 > /proc/sys/user/max_user_namespaces"
_RIGHTLESS = 'setpriv --inh-caps=-all --ambient-caps=-all "$@"'


def stopped_by_modes() -> list[str]:
    """What comes before a command so that the modes of its own files hold for it."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("no mode stops root, and there is no setpriv here")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def without_namespaces() -> list[str]:
    """The same on a machine that gives nobody a user namespace. Root without rights gets none that
    knows its number."""
    if os.geteuid() == 0:
        return stopped_by_modes()
    words = ["unshare", "--user", "--map-current-user", "--keep-caps"]
    return [*words, "sh", "-c", f"{_NO_MORE} && exec {_RIGHTLESS}", "sh"]


class Restrained(Agents):
    """Each command is a process of its own, started with these words before it."""

    def __init__(self, agents: Agents, before: Sequence[str]) -> None:
        super().__init__(agents.home, agents.cwd, agents.environ)
        self._before = before

    def __call__(self, *argv: str) -> Answer:
        done = subprocess.run(
            [*self._before, str(COMMAND), "--format", "json", *argv],
            cwd=self.cwd,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        return Answer(argv=argv, code=done.returncode, out=out, err=err)
