"""What is on record of ignored folders that an apply brings, of which the list lies elsewhere."""

from msgspec import Struct


class IgnoredToken(Struct, frozen=True, kw_only=True):
    """`result` is the snapshot that has the new files; `asked` is what was asked for, as far as
    there is something to bring, and `places` where that is: paths for people, the project's own is
    empty. `told` is how much it is, in words."""

    result: str
    asked: tuple[str, ...]
    places: tuple[str, ...]
    told: tuple[str, ...]

    def takes(self, path: str) -> bool:
        """Whether all that was changed at a path, as people read it, comes along."""
        wanted = path.rstrip("/")
        return any(not p or wanted == p or wanted.startswith(f"{p}/") for p in self.places)
