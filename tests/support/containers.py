"""The program without its command line: a Container over a world's folders."""

from tests.support.world import World

from cleveragents.config import load_settings
from cleveragents.container import Container
from cleveragents.domain.events import Event


class Noted:
    """An event sink that keeps what it was told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


def make_container(world: World, **environ: str) -> Container:
    """As the command builds it: nothing is replaced, nothing left out."""
    merged = {**world.agents.environ, **environ}
    loaded = load_settings(
        merged, home=str(world.home), cwd=str(world.project.path), flags={}, config_path=None
    )
    return Container(loaded.settings, merged, str(world.project.path), Noted())
