"""The processes in which SQLite runs over databases that a step could have written.

Each can write in the folder of one database and nowhere else. It is started with the first
question and answers until the command ends; after a database that was too much for it, the next
question gets a new one.
"""

import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sqlite import answers
from cleveragents.infrastructure.sqlite.answers import DatabaseDifference, Found
from cleveragents.infrastructure.sqlite.messages import NonsenseError, Value
from cleveragents.infrastructure.sqlite.talk import GoneError, SilentError, Talk

if TYPE_CHECKING:
    from cleveragents.infrastructure.processes.own_work import OwnWork

_PACKAGES = str(Path(__file__).parents[3])
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from cleveragents.infrastructure.sqlite.inside import main; main()"
)
# Without site packages, the user's settings, and the folder it stands in, where a step writes.
_ARGV = (sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, _PACKAGES)
_SECONDS = 600.0
_GRACE_SECONDS = 15.0
_LATE_SECONDS = 2.0
# Processes of one thread that wait for questions about other databases; then the oldest ends.
_MOST_WAITING = 4
_MOST_ROWS = 1000
_Answer = TypeVar("_Answer")


class LostInsideError(Exception):
    """SQLite died of the database, or gave no answer in time and was ended."""

    def __init__(self, what: str, *, late: bool) -> None:
        super().__init__(what)
        self.late = late


class DatabasePlace(NamedTuple):
    """A database, and how the steps that could have written it are confined."""

    path: str
    confinement: Confinement

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)


def place_of(resource: PlanResource) -> DatabasePlace:
    return DatabasePlace(resource.sandbox_path, resource.confinement)


class _Worker(Struct):
    """The kernel ends it together with the thread that started it, so it serves no other."""

    thread: threading.Thread
    place: tuple[str, Confinement]
    talk: Talk
    ending: ExitStack


class DatabaseWorkers:
    """`own_work` is asked for with the first question, for most commands have none."""

    def __init__(self, own_work: "Callable[[], OwnWork]") -> None:
        self._own_work = own_work
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._inherited: list[list[_Worker]] = []
        self._pid = os.getpid()

    @contextmanager
    def held(self, place: DatabasePlace, seconds: float) -> Generator[tuple[str, ...]]:
        """Its journals are folded into it, and nobody writes while the block lasts; gives what has
        to be told about it. `seconds` is how long others may keep it locked.

        Raises RefusedInsideError and LostInsideError, like all of these.
        """
        with self._until_released(("hold", place.path, seconds), place, answers.notes) as notes:
            yield notes

    @contextmanager
    def read(self, place: DatabasePlace, seconds: float) -> Generator[None]:
        """A reader of SQLite's has it open while the block lasts, and nothing in it is changed:
        what is committed now stays to be found in the file and its log, whoever writes."""
        with self._until_released(("read", place.path, seconds), place, _nothing):
            yield

    @contextmanager
    def _until_released(
        self,
        request: tuple[str, str, float],
        place: DatabasePlace,
        shape: Callable[[Value], _Answer],
    ) -> Generator[_Answer]:
        worker = self._worker(place)
        answer = self._asked(worker, request, request[2] + _SECONDS, shape)
        try:
            yield answer
        except BaseException:
            with suppress(LostInsideError):
                self._asked(worker, ("release",), _GRACE_SECONDS, _nothing)
            raise
        self._asked(worker, ("release",), _SECONDS, _nothing)

    def execute(self, place: DatabasePlace, sql: str, parameters: Value, seconds: float) -> Found:
        request = ("execute", place.path, sql, parameters, seconds)
        return self._in_time(place, request, seconds, _MOST_ROWS)

    def query(
        self, place: DatabasePlace, sql: str, parameters: Value, limit: int, seconds: float
    ) -> Found:
        request = ("query", place.path, sql, parameters, limit, seconds)
        return self._in_time(place, request, seconds, limit)

    def compare(self, old: str, place: DatabasePlace, name: str) -> DatabaseDifference:
        """From the file `old`, which nobody changes; `name` is what people call the database."""
        return self._ask(place, ("compare", old, place.path, name), _SECONDS, answers.difference)

    def check(self, place: DatabasePlace, path: str) -> str:
        """What is wrong with the file at `path`, a copy that nobody changes; `ok` if nothing is."""
        return self._ask(place, ("check", path), _SECONDS, answers.text)

    def close(self) -> None:
        """End those that wait; there may be new ones after that."""
        with self._lock:
            self._disinherit()
            waiting, self._workers = self._workers, []
        for worker in waiting:
            worker.talk.close()
            worker.ending.close()

    # --- the processes --------------------------------------------------------------------------

    def _in_time(self, place: DatabasePlace, request: Value, seconds: float, limit: int) -> Found:
        """SQLite looks at the clock between two steps of a statement. One of them can take any
        time, as `instr` can: then it is ended, little later than it would have ended itself."""
        worker = self._worker(place)
        return self._asked(
            worker, request, seconds + _LATE_SECONDS, lambda v: answers.found(v, limit)
        )

    def _ask(
        self,
        place: DatabasePlace,
        request: Value,
        seconds: float,
        shape: Callable[[Value], _Answer],
    ) -> _Answer:
        return self._asked(self._worker(place), request, seconds + _GRACE_SECONDS, shape)

    def _asked(
        self, worker: _Worker, request: Value, seconds: float, shape: Callable[[Value], _Answer]
    ) -> _Answer:
        try:
            return shape(answers.granted(worker.talk.ask(request, seconds)))
        except (answers.RefusedInsideError, OverflowError):
            raise
        except SilentError as error:
            self._end(worker)
            late = f"SQLite gave no answer within {seconds:.0f} seconds, and was ended"
            raise LostInsideError(late, late=True) from error
        except (GoneError, NonsenseError) as error:
            self._end(worker)
            raise LostInsideError(f"SQLite died of it ({error})", late=False) from error
        except BaseException:
            self._end(worker)  # nobody waits for its answer any more
            raise

    def _worker(self, place: DatabasePlace) -> _Worker:
        # It needs neither the network nor any other place, whatever the steps may have.
        confinement = replace(place.confinement, network=False, environment=(), write=())
        wanted = (place.folder, confinement)
        here = threading.current_thread()
        with self._lock:
            self._disinherit()
            ours = [worker for worker in self._workers if worker.thread is here]
            over = [worker for worker in self._workers if not worker.thread.is_alive()]
        for worker in ours:
            if worker.place == wanted and not worker.talk.is_over:
                return worker
            if worker.place == wanted:
                over.append(worker)
        for worker in (*over, *ours[: max(0, len(ours) - _MOST_WAITING + 1)]):
            self._end(worker)
        return self._start(wanted)

    def _start(self, place: tuple[str, Confinement]) -> _Worker:
        # Whoever only reads bytes need not wait for what starts processes.
        from cleveragents.infrastructure.processes.own_work import Work  # noqa: PLC0415

        folder, confinement = place
        work = Work(argv=_ARGV, folder=folder, writable=[folder], confinement=confinement)
        with ExitStack() as stack:
            talk = Talk(stack.enter_context(self._own_work().started(work)))
            worker = _Worker(threading.current_thread(), place, talk, stack.pop_all())
        with self._lock:
            self._workers.append(worker)
        return worker

    def _end(self, worker: _Worker) -> None:
        with self._lock:
            if worker in self._workers:
                self._workers.remove(worker)
        worker.ending.close()

    def _disinherit(self) -> None:
        """On the far side of a fork they are still the other side's."""
        if self._pid != os.getpid():
            self._inherited.append(self._workers)
            self._pid, self._workers = os.getpid(), []


def _nothing(value: Value) -> None:
    if value is not None:
        raise NonsenseError("an answer to nothing")
