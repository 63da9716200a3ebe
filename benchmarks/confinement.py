"""What it costs to hold a command inside: `python benchmarks/confinement.py [CALLS]`.

One call of `/bin/true` through the runner that tools use, with confinement off, by the kernel, and
by bubblewrap where it is installed; medians, in milliseconds. Rounds alternate, so that a busy
machine is busy for all of them.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from cleveragents.domain.confinement import Confinement, ConfinementMeans, ConfinementMode
from cleveragents.domain.resource import SandboxAddress
from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.processes.forking.fork_server import ForkServer
from cleveragents.infrastructure.processes.runner import Command, ProcessRunner

OFF = Confinement(mode=ConfinementMode.OFF)
WAYS = {
    "off": OFF,
    "kernel, with network": Confinement(network=True),
    "kernel": Confinement(),
    "bubblewrap": Confinement(by=ConfinementMeans.BUBBLEWRAP),
}


def main(calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Path(folder, "code")
        sandbox.mkdir()
        confiner = Confiner(environ=dict(os.environ), scratch=folder)
        runner = ProcessRunner(confiner, ForkServer(), 100_000)
        ways = dict(WAYS)
        if confiner.machine.bubblewrap is None:
            del ways["bubblewrap"]
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(calls):
            for name, asked in ways.items():
                times[name].append(timed(runner, asked, str(sandbox)))
    for name, found in times.items():
        more = statistics.median(found) - statistics.median(times["off"])
        print(f"{name:22}{statistics.median(found) * 1000:8.2f} ms{more * 1000:+8.2f} ms")


def timed(runner: ProcessRunner, asked: Confinement, sandbox: str) -> float:
    command = Command(
        name="true",
        argv=["/bin/true"],
        folder=sandbox,
        sandboxes={"code": SandboxAddress(value=sandbox, folder=sandbox, writable=(sandbox,))},
        timeout=10,
        confinement=asked,
    )
    started = time.perf_counter()
    runner.run(command)
    return time.perf_counter() - started


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
