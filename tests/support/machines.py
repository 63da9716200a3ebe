"""Machines that offer less than this one: the kernel itself refuses kinds of namespaces there."""

import subprocess

_LIMIT = """
for kind in {kinds}; do echo 0 > /proc/sys/user/max_${{kind}}_namespaces; done
exec "$@"
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
