"""Ids in what people read become what they would say and can type; JSON and YAML keep whole ids.

In one place, so that no message, question or error forgets it (ADR 0082). Paths and what a file
holds stay as they are.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cleveragents.cli.render.blocks import (
    Block,
    Branch,
    Cell,
    Code,
    CommandResult,
    Fields,
    Grid,
    Shown,
    Tree,
    text_of,
    tone_of,
)

if TYPE_CHECKING:
    from cleveragents.application.services.plans.spoken_names import SpokenName

_ULID = r"(?<![\w/.-])[0-7][0-9A-HJKMNP-TV-Z]{25}(?!\w|[/-]|\.\w)"
_ID = re.compile(_ULID, re.ASCII)
# A command that can be typed: what stands there for a plan may be left out.
_WORDS = "plan|tool|undo|redo|rewind|log|diff|status|apply|discard"
_TYPED = re.compile(rf"(agents (?:{_WORDS})\b[^`\n]*?)((?: --plan)? ?)({_ULID})", re.ASCII)


class Spelling:
    def __init__(self, look: "Callable[[Collection[str]], Mapping[str, SpokenName]]") -> None:
        self._look = look
        self._known: dict[str, SpokenName] = {}

    def outcome(self, outcome: CommandResult) -> CommandResult:
        """The same in words; all ids are looked up at once."""
        texts = [*_texts(outcome.blocks), *outcome.messages, *outcome.warnings]
        if not self._learn(texts):
            return outcome
        return replace(
            outcome,
            blocks=[self._block(block) for block in outcome.blocks],
            messages=[self.text(text) for text in outcome.messages],
            warnings=[self.text(text) for text in outcome.warnings],
        )

    def text(self, text: str) -> str:
        if not self._learn([text]):
            return text
        while (said := _TYPED.sub(self._typed, text)) != text:
            text = said
        return _ID.sub(lambda found: self._named(found[0]), text)

    def _learn(self, texts: Sequence[str]) -> bool:
        """Whether there is anything to say in other words."""
        ids = {ulid for text in texts for ulid in _ID.findall(text)}
        unknown = ids - self._known.keys()
        if unknown:
            self._known.update(self._look(unknown))
        return not ids.isdisjoint(self._known)

    def _typed(self, found: re.Match[str]) -> str:
        name = self._known.get(found[3])
        if name is None:
            return found[0]
        if not name.typed:
            return found[1]
        anywhere, _, called = name.typed.rpartition(" ")
        option = f" {anywhere}" if anywhere and "--plan" in found[2] else ""
        return f"{found[1]}{option}{found[2]}{called if option else name.typed}"

    def _named(self, ulid: str) -> str:
        name = self._known.get(ulid)
        return ulid if name is None else name.name

    def _block(self, block: Block) -> Block:
        match block:
            case Fields():
                rows = [(name, self._shown(value)) for name, value in block.rows]
                return replace(block, title=self.text(block.title), rows=rows)
            case Grid():
                rows = [[self._shown(cell) for cell in row] for row in block.rows]
                facts = [self._shown(fact) for fact in block.facts]
                return replace(block, title=self.text(block.title), rows=rows, facts=facts)
            case Tree():
                return replace(block, root=self._branch(block.root))
            case Code():
                return replace(block, title=self.text(block.title))

    def _branch(self, branch: Branch) -> Branch:
        return replace(
            branch,
            text=self._shown(branch.text),
            note=self.text(branch.note),
            children=[self._branch(child) for child in branch.children],
        )

    def _shown(self, shown: Shown) -> Shown:
        if isinstance(shown, str):
            return self.text(shown)
        return Cell(self.text(text_of(shown)), tone_of(shown))


def _texts(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        yield block.title
        match block:
            case Fields():
                yield from (text_of(value) for _, value in block.rows)
            case Grid():
                yield from (text_of(cell) for row in block.rows for cell in row)
                yield from map(text_of, block.facts)
            case Tree():
                yield from _branch_texts(block.root)
            case Code():
                pass


def _branch_texts(branch: Branch) -> Iterator[str]:
    yield text_of(branch.text)
    yield branch.note
    for child in branch.children:
        yield from _branch_texts(child)
