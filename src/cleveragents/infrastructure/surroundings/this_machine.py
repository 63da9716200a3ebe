"""What a program that is to be run finds here: the project around it, programs, the home folder."""

import difflib
import os
import shutil
from collections.abc import Mapping

from cleveragents.application.ports.running import StandingPlace
from cleveragents.infrastructure.files.whereabouts import CurrentFolder


class ThisMachine:
    """Implements the port RunSurroundings."""

    def __init__(
        self, here: CurrentFolder, environ: Mapping[str, str], cwd: str, data_dir: str
    ) -> None:
        self._here = here
        self._environ = environ
        self._cwd = cwd
        self._data_dir = os.path.realpath(data_dir)

    def place(self) -> StandingPlace:
        top = self._here.around()[-1]
        if not _is_repository(top):
            return StandingPlace(top=self._cwd, below="", is_repository=False)
        below = os.path.relpath(self._cwd, top)
        return StandingPlace(top=top, below="" if below == "." else below, is_repository=True)

    def kind_of_place(self, path: str) -> str | None:
        real = os.path.realpath(path)
        home = os.path.realpath(os.path.expanduser("~"))
        if real == "/":
            return "the top of this machine"
        if real == home:
            return "your home folder"
        if home.startswith(f"{real}/"):
            return "a folder above your home folder"
        if f"{real}/".startswith(f"{self._data_dir}/"):
            return "where agents keeps its own data"
        return None

    def type_of(self, path: str) -> str:
        place = self.absolute(path)
        if os.path.isdir(place):
            return "git-checkout" if _is_repository(place) else "fs-directory"
        return "sqlite" if os.path.isfile(place) else "fs-directory"

    def absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, os.path.expanduser(path)))

    def program(self, name: str) -> str | None:
        return shutil.which(name, path=self._path)

    def similar_program(self, name: str) -> str | None:
        if os.path.dirname(name):
            return None
        known: set[str] = set()
        for folder in self._path.split(os.pathsep):
            try:
                known.update(os.listdir(folder or "."))
            except OSError:
                continue
        return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.75)), None)

    def is_there(self, path: str) -> bool:
        return os.path.lexists(os.path.expanduser(path))

    def is_set(self, variable: str) -> bool:
        return variable in self._environ

    @property
    def _path(self) -> str:
        return self._environ.get("PATH", os.defpath)


def _is_repository(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, ".git"))
