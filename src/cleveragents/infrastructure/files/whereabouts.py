"""Where one stands: the folders around the current one, up to the top of its repository."""

import os
from collections.abc import Sequence


class CurrentFolder:
    """`cwd` is the current folder as the system has it, without links."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd

    def around(self) -> Sequence[str]:
        """A `.git` of any kind ends the way: a clone, a worktree and a submodule are each a place
        of their own, and what is outside of them must never be meant by mistake."""
        found = [self._cwd]
        while not os.path.lexists(os.path.join(found[-1], ".git")):
            parent = os.path.dirname(found[-1])
            if parent == found[-1]:
                break
            found.append(parent)
        return found
