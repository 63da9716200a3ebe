"""What a step costs that a language model decides, beside the model and the tool themselves.

    python benchmarks/actors.py                     60 steps that write a file, and 60 that read one

A server on this machine plays the model. The command runs in this process; from the time between
two requests is taken what the client spends on the request and what the tool takes. What is left is
ours: understanding the answer, the decision with its checkpoint groups, and hearing what came of
it. Loading the libraries happens once for each command, and is told by itself.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.chat_server import ChatServer, Reply, call, say
from tests.support.llm_world import LlmWorld
from tests.support.world import World

AIM_MS = 20.0


class Watch:
    """Adds up what calls of one function take, and remembers when each began."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.begun: list[tuple[float, float]] = []

    def around(self, function: Callable[..., Any], *, marks: bool) -> Callable[..., Any]:
        def timed(*words: Any, **more: Any) -> Any:
            start = time.perf_counter()
            if marks:
                self.begun.append((start, self.spent))
            try:
                return function(*words, **more)
            finally:
                self.spent += time.perf_counter() - start

        return timed

    def own(self) -> list[float]:
        """Milliseconds of our own from the beginning of each request to that of the next."""
        pairs = zip(self.begun, self.begun[1:], strict=False)
        return [(after - before - (spent - had)) * 1000 for (before, had), (after, spent) in pairs]


def measured(llm: LlmWorld, replies: list[Reply]) -> list[float]:
    from cleveragents.infrastructure.actors.llm.client import ModelClient
    from cleveragents.infrastructure.tools.toolbox import ToolBox

    watch = Watch()
    asked, ran = ModelClient.ask, ToolBox.run
    ModelClient.ask = watch.around(asked, marks=True)
    ToolBox.run = watch.around(ran, marks=False)
    try:
        llm.server.will(*replies, say("done"))
        llm.run(actor={"max_steps": 1000})
    finally:
        ModelClient.ask, ToolBox.run = asked, ran
    return watch.own()


def main() -> None:
    parser = argparse.ArgumentParser(description="What a step costs that a language model decides.")
    parser.add_argument("--steps", type=int, default=60)
    steps = parser.parse_args().steps
    start = time.perf_counter()
    import pydantic_ai.models.openai  # noqa: F401

    print(f"loading the libraries          {time.perf_counter() - start:8.2f} s")
    with tempfile.TemporaryDirectory() as folder, ChatServer() as server:
        llm = LlmWorld(World(Path(folder) / "w"), server)
        writing = [call("file_write", path=f"f{n}", content=f"{n}\n") for n in range(steps)]
        reading = [call("file_list") for _ in range(steps)]
        for name, replies in (("a step that writes", writing), ("a step that reads", reading)):
            own = measured(llm, replies)
            median, last = statistics.median(own), statistics.median(own[-10:])
            told = "within" if median < AIM_MS else "OVER"
            print(
                f"{name:<30} {median:8.2f} ms of our own (the last ten: {last:.2f});"
                f" {told} the {AIM_MS:g} ms"
            )


if __name__ == "__main__":
    main()
