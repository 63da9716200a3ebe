"""Owns which versions are compared, and how they come into the cache below `build/`.

Nothing is installed into the system: npm packages go into a folder of their own, Debian packages
are unpacked there. Which registries are asked is up to npm's and apt's own settings.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.peers.places import PeerError

CACHE = Path(__file__).resolve().parents[2] / "build" / "peers"
GEMINI = "@google/gemini-cli-core@0.61.0"
OPENCODE = "opencode-linux-x64@1.18.33"
RESTIC = ("restic=0.14.0-1+b5",)
RSYNC = ("rsync=3.2.7-1+deb12u6", "libpopt0=1.19+dfsg-1", "libxxhash0=0.8.1-1")
BORG = (
    "borgbackup=1.2.4-1",
    "python3-msgpack=1.0.3-2+b1",
    "python3-packaging=23.0-1",
    "python3-pkg-resources=66.1.1-1+deb12u2",
    "liblz4-1=1.9.4-1",
    "libxxhash0=0.8.1-1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to type, and what must stand in the environment for it."""

    argv: tuple[str, ...]
    environ: dict[str, str] = field(default_factory=dict)


def npm_package(package: str) -> Path:
    """The folder of the package, installed if it is not there yet."""
    name = package.rpartition("@")[0]
    top = CACHE / package.replace("/", "_")
    found = top / "node_modules" / name
    if not (top / "complete").exists():
        _needs("npm")
        _needs("node")
        top.mkdir(parents=True, exist_ok=True)
        words = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional"]
        _run(*words, "--loglevel=error", "--prefix", str(top), package, cwd=top)
        (top / "complete").touch()
    return found


def debian_command(name: str, packages: tuple[str, ...]) -> Command:
    """The pinned package, else what this machine has under that name."""
    try:
        top = _unpacked(name, packages)
    except PeerError:
        own = shutil.which(name)
        if own is None:
            raise
        return Command(argv=(own,))
    libraries = ":".join(str(path) for path in sorted(top.glob("usr/lib/*-linux-gnu")))
    environ = {"LD_LIBRARY_PATH": libraries}
    program = str(top / "usr/bin" / name)
    if Path(program).read_bytes().startswith(b"#!/usr/bin/python3"):
        environ["PYTHONPATH"] = str(top / "usr/lib/python3/dist-packages")
        return Command(argv=("/usr/bin/python3", program), environ=environ)
    return Command(argv=(program,), environ=environ)


def _unpacked(name: str, packages: tuple[str, ...]) -> Path:
    top = CACHE / f"{name}-{packages[0].partition('=')[2]}"
    if not (top / "complete").exists():
        _needs("apt-get")
        _needs("dpkg-deb")
        downloads = top / "downloads"
        downloads.mkdir(parents=True, exist_ok=True)
        _run("apt-get", "-qq", "download", *packages, cwd=downloads)
        for package in sorted(downloads.glob("*.deb")):
            _run("dpkg-deb", "-x", str(package), str(top), cwd=top)
        shutil.rmtree(downloads)
        (top / "complete").touch()
    return top


def _needs(command: str) -> None:
    if shutil.which(command) is None:
        raise PeerError(f"there is no {command} here")


def _run(*argv: str, cwd: Path) -> None:
    done = subprocess.run(
        argv, cwd=cwd, capture_output=True, text=True, check=False, env=os.environ
    )
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        # Only what failed: the rest may name registries and folders of this machine.
        raise PeerError(f"{argv[0]} ended with {done.returncode}, {len(lines)} lines of complaint")
