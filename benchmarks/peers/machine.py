"""Owns what is told about the machine: what decides about speed, and nothing that names it."""

import os
import platform
import sqlite3
import subprocess
import time
from pathlib import Path


def machine(folder: Path) -> dict[str, object]:
    words = ["stat", "-f", "-c", "%T", str(folder)]
    kind = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory / (1 << 30)),
        "processor": _processor(),
        "kernel": "Linux " + ".".join(platform.release().split(".")[:2]),
        "filesystem": "ext4" if kind == "ext2/ext3" else kind,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def moment() -> dict[str, object]:
    return {
        "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "load": round(os.getloadavg()[0], 1),
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
