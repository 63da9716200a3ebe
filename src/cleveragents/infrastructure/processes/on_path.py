"""Where a program is: a question of every command, for which `shutil` would be too much to load."""

import os


def program_on_path(name: str) -> str | None:
    """The first file of that name on the PATH that we may run."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if folder and os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None
