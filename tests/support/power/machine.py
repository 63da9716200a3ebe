"""What pulling the plug needs of the machine: loop devices, file systems, another boot."""

import contextlib
import ctypes
import fcntl
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from tests.support.power.logging_disk import DISK, unmount

SIZE = 512 << 20
MOUNTED = "power-disk"
"""The name of the folder at which a recording has its disk."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NEW_MOUNTS = 0x20000  # CLONE_NEWNS
_NEW_TIMES = 0x80  # CLONE_NEWTIME
# Nothing is left for later and nothing discarded: what is in the log is the doing of the workload.
_MAKE = {
    "ext4": ("-q", "-F", "-J", "size=16", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("-q", "-f", "-K"),
    "btrfs": ("-q", "-f", "-K"),
}
FILE_SYSTEMS = tuple(_MAKE)
_PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}


def missing(kind: str) -> list[str]:
    """What keeps the plug from being pulled here, each with what would help."""
    wrong: list[str] = []
    if os.geteuid():
        wrong.append("root is needed, to mount")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        wrong.append("/dev/fuse is not there or may not be used (modprobe fuse)")
    if not os.access("/dev/loop-control", os.R_OK | os.W_OK):
        wrong.append("there are no loop devices (modprobe loop)")
    for program, package in (("losetup", "mount"), (f"mkfs.{kind}", _PACKAGES[kind])):
        if shutil.which(program, path=_path()) is None:
            wrong.append(f"{program} is not there (apt-get install {package})")
    known = Path("/proc/filesystems").read_text().split()
    if not wrong and kind not in known:
        wrong.append(f"the kernel does not know {kind} (modprobe {kind})")
    return wrong


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def told(*argv: str | Path) -> str:
    """A program of the machine's, which must succeed."""
    environ = {**os.environ, "PATH": _path()}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop device, ours until the run ends: recordings and judges see the same device number.

    On another device the marks of files would not fit, everything would be read anew, and bytes
    that were lost behind right marks would be noticed by accident.
    """

    device: str

    @contextlib.contextmanager
    def over(self, file: Path) -> Generator[None]:
        deadline = time.monotonic() + 300
        while subprocess.run(["losetup", self.device, file], capture_output=True).returncode:
            assert time.monotonic() < deadline, f"{self.device} stays busy"
            time.sleep(0.05)
        try:
            yield
        finally:
            told("losetup", "--detach", self.device)

    def make(self, kind: str) -> None:
        told(f"mkfs.{kind}", *_MAKE[kind], self.device)


@contextlib.contextmanager
def free_loop() -> Generator[Loop]:
    """A lock file keeps other runs off: the device itself is free between two states."""
    locks = Path("/run/lock")
    locks.mkdir(parents=True, exist_ok=True)
    for number in range(256):
        device = Path(f"/dev/loop{number}")
        if not device.exists() or _in_use(device):
            continue
        with (locks / f"cleveragents-power-{device.name}").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield Loop(str(device))
            return
    raise RuntimeError("no loop device is free")


def _in_use(device: Path) -> bool:
    return Path(f"/sys/block/{device.name}/loop").exists()


@contextlib.contextmanager
def mounted(loop: Loop, place: Path, kind: str) -> Generator[None]:
    place.mkdir(exist_ok=True)
    told("mount", "-t", kind, loop.device, place)
    try:
        yield
    finally:
        unmount(place)


def own_mounts() -> None:
    """This process sees mounts of its own from here on, without what other runs are recording:
    a copy of their mounts would keep their disks in use."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS):
        raise OSError(ctypes.get_errno(), "unshare")
    told("mount", "--make-rprivate", "/")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, place, *_ = line.split()
        if source == DISK or Path(place).name == MOUNTED:
            subprocess.run(["umount", "--lazy", place], capture_output=True, check=False)


def another_boot(scratch: Path) -> None:
    """As the machine that has just started says it; its clocks do so to children of this process,
    which all commands are."""
    made = scratch / "boot_id"
    made.write_text(f"{uuid.uuid4()}\n")
    told("mount", "--bind", made, _BOOT_ID)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_TIMES):
        raise OSError(ctypes.get_errno(), "unshare")
    up = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    Path("/proc/self/timens_offsets").write_text(f"boottime -{up} 0\n")
