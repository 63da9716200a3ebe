"""The process that starts commands in our place: it is small, so that a fork of it costs little.

It is told what to start over its standard input, and answers there which process that is. What it
forks is the supervisor of a command, which then does what it would do below ourselves. All
confining is done by that one and by what it forks: this process itself is as free as we are, and
does nothing but fork.
In which order: it hears of the end of ours before it says that it is ready; a supervisor knows
whose end it has to hear of before it is told what to run.
What is not guaranteed: that it lives. If it dies its supervisors end what they keep, as they do if
we die; it ends with us.
"""

import errno
import fcntl
import gc
import os
import select
import signal
import socket
from collections.abc import Sequence

from msgspec.structs import replace

from cleveragents.infrastructure.confinement.syscalls import signalfd
from cleveragents.infrastructure.processes.forking.orders import (
    NO_FILES,
    NO_FOLDER,
    NOT_BEGUN,
    PROCESS,
    READY,
    Order,
    OrderFiles,
    files_of,
    received,
)
from cleveragents.infrastructure.processes.supervisor import ProcessSupervisor

_ENOUGH_FOR_SIGNALS = 4096
_FIRST_OF_OURS = 3


def main(parent: int) -> None:  # pragma: no cover - in a process of its own, like all that follows
    """Until `parent` has ended, or wants nothing more; the end of the process."""
    try:
        _keep_serving(parent)
    finally:
        os._exit(0)


def _keep_serving(parent: int) -> None:  # pragma: no cover - as above
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python's own way; programs expect the usual one
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    children = signalfd((signal.SIGCHLD,))
    ours = os.pidfd_open(parent)
    if os.getppid() != parent:
        return
    channel = socket.socket(fileno=0)
    gc.collect()
    gc.freeze()  # a fork copies what is touched, and a collection touches everything
    gc.disable()
    channel.sendall(READY)
    ready = select.poll()
    for number in (0, children, ours):
        ready.register(number, select.POLLIN)
    while ours not in (found := [number for number, _ in ready.poll()]):
        if children in found:
            os.read(children, _ENOUGH_FOR_SIGNALS)
            _bury()
        if 0 in found and not _serve(channel):
            return


def _bury() -> None:  # pragma: no cover - as above
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def _serve(channel: socket.socket) -> bool:  # pragma: no cover - as above
    """Whether somebody may ask for more."""
    told = received(channel)
    if told is None:
        return False
    order, numbers = told
    try:
        if len(numbers) < order.number_of_files:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        process = _forked(order, files_of(numbers))
    except OSError as error:
        channel.sendall(PROCESS.pack(-(error.errno or errno.EAGAIN)))
        return True
    finally:
        for number in numbers:
            os.close(number)
    handle = os.pidfd_open(process)  # who cannot tell what it has started ends, and that with it
    socket.send_fds(channel, [PROCESS.pack(process)], [handle])
    os.close(handle)
    return True


def _forked(order: Order, files: OrderFiles) -> int:  # pragma: no cover - as above
    ourselves = os.getpid()
    process = os.fork()
    if process == 0:
        try:
            _begin(order, files, ourselves)
        finally:
            os._exit(255)
    return process


def _begin(order: Order, files: OrderFiles, server: int) -> None:  # pragma: no cover - as above
    """In the new process. Returns if there is nothing that it could keep watch over."""
    os.setsid()
    try:
        mine = _sorted_out(order, files)
    except OSError as error:
        os.write(files.begun, NO_FILES + str(error.errno or 0).encode())
        return
    try:
        os.chdir(order.folder)
    except OSError as error:
        os.write(mine.begun, NO_FOLDER + str(error.errno or 0).encode())
        return
    enclosure = order.enclosure
    if enclosure.ruleset is not None:
        enclosure = replace(enclosure, ruleset=mine.ruleset)
    supervisor = ProcessSupervisor(
        report=mine.report,
        most_processes=order.most_processes,
        enter=enclosure.enter,
        program=order.program,
        separate=enclosure.separate,
        asked=mine.asked,
        parent=server,
    )
    try:
        supervisor.begin()
    except (OSError, ValueError):
        os.write(mine.begun, NOT_BEGUN)


def _sorted_out(order: Order, files: OrderFiles) -> OrderFiles:  # pragma: no cover - as above
    """Every open file where the program expects it, and ours where none of them is."""
    places = order.program.passed
    free = max((_FIRST_OF_OURS, *(number + 1 for number in places)))
    mine = files_of([_out_of_the_way(number, places, free) for number in files.as_list()])
    for number, place in enumerate((mine.stdin, mine.stdout, mine.stderr)):
        os.dup2(place, number)
    for number, place in zip(places, mine.passed, strict=True):
        os.dup2(place, number)
    return mine


def _out_of_the_way(number: int, places: Sequence[int], free: int) -> int:  # pragma: no cover
    return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, free) if number in places else number
