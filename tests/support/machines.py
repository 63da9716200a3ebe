"""Machines that offer less than this one: the kernel itself refuses kinds of namespaces there, or
more than so many files, processes or bytes of memory."""

import json
import subprocess
import sys
import time

from tests.support.agents import COMMAND, Agents, Answer

_LIMIT = """
for kind in {kinds}; do echo 0 > /proc/sys/user/max_${{kind}}_namespaces; done
exec "$@"
"""

_LIMITED = """
import json, os, resource, sys
for kind, most in json.loads(sys.argv[1]).items():
    resource.setrlimit(getattr(resource, "RLIMIT_" + kind), (most, most))
os.execv(sys.argv[2], sys.argv[2:])
"""


def without(*kinds: str) -> list[str]:
    """What to put before a command: there it is root of a user namespace without these kinds:
    `pid`, `mnt`, `user`."""
    return ["unshare", "-Ur", "sh", "-c", _LIMIT.format(kinds=" ".join(kinds)), "sh"]


def can_be_made() -> bool:
    try:
        done = subprocess.run([*without("pid"), "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0


def just_started() -> list[str]:
    """What to put before a command: there the machine has been up for a few seconds only."""
    up = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    return ["unshare", "-UrT", f"--boottime=-{up}"]


def limited(agents: Agents, limits: dict[str, int], *argv: str, alone: bool = False) -> Answer:
    """The command where the limits, such as that of NOFILE, are these. `alone`: in a user namespace
    of its own, so that the processes of others do not count."""

    # Only there, not here: the process that becomes the command is one of ours until then.
    words = [str(COMMAND), "--format", "json", *argv]
    apart = ["unshare", "-Ur"] if alone else []
    done = subprocess.run(
        [*apart, sys.executable, "-I", "-S", "-c", _LIMITED, json.dumps(limits), *words],
        cwd=agents.cwd,
        env=agents.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode("utf-8", "replace")
    return Answer(argv=argv, code=done.returncode, out=out, err=err)
