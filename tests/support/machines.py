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

# Calls of x86_64: unshare, mount, open_tree. A filter answers each with "not permitted".
_REFUSING = """
import ctypes, os, struct, sys
line = lambda code, value, yes=0, no=0: struct.pack("=HBBI", code, yes, no, value)
calls = (272, 165, 428)
code = line(0x20, 0) + b"".join(line(0x15, n, len(calls) - i, 0) for i, n in enumerate(calls))
code += line(0x06, 0x7FFF0000) + line(0x06, 0x00050001)
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))
held = ctypes.create_string_buffer(code, len(code))
program = Program(len(code) // 8, ctypes.addressof(held))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"""


def refusing_namespaces() -> list[str]:
    """What to put before a command: there a filter of calls, as containers have one, refuses all
    namespaces and mounts."""
    return [sys.executable, "-I", "-S", "-c", _REFUSING]


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
