"""Draws docs/images/architecture.svg and the tables beside it from the imports in src/."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from diagrams import Picture

SOURCE = Path(__file__).resolve().parent.parent / "src" / "cleveragents"
# From the top down, as import-linter's contract has them; there the first two are side by side.
# `errors` is no more than the errors of the domain by another name.
LAYERS = ("cli", "checkpoints", "container", "infrastructure", "application", "domain", "config")
MEANINGS = {
    "cli": "parse, call one service, render",
    "checkpoints": "the same services, called from Python",
    "container": "builds every service by hand",
    "infrastructure": "adapters: implement ports, never call services",
    "application": "use cases, and the ports they need",
    "domain": "values and rules, no input or output",
    "config": "settings",
}
LEFT, WIDTH, HEIGHT, GAP = 24, 600, 66, 34


def picture() -> Picture:
    it = Picture(830, 14 + len(LAYERS) * (HEIGHT + GAP), "Which layer imports which")
    tops = {name: 24 + number * (HEIGHT + GAP) for number, name in enumerate(LAYERS)}
    for name, y in tops.items():
        it.box(LEFT, y, WIDTH, HEIGHT, *_words(name), kind="now")
    lane = 0
    for above, below in sorted(imports(), key=_span):
        if LAYERS.index(below) == LAYERS.index(above) + 1:
            y, x = tops[below], LEFT + WIDTH // 2
            it.arrow(f"M{x} {y - GAP} V{y - 2}")
            continue
        x = LEFT + WIDTH + 26 + lane * 26
        begin, end = tops[above] + 12 + lane * 5, tops[below] + HEIGHT - 12 - lane * 5
        it.arrow(f"M{LEFT + WIDTH} {begin} H{x} V{end} H{LEFT + WIDTH + 2}")
        lane += 1
    return it


def imports() -> set[tuple[str, str]]:
    """From which layer to which other one imports lead."""
    pairs = {(_layer(path), _layer(path_of(name))) for path, name in _all_imports()}
    return {(above, below) for above, below in pairs if above and below and above != below}


def packages() -> str:
    """A table of all packages, and what each imports."""
    used: dict[str, set[str]] = {_package(_relative(file)): set() for file in _files()}
    for path, name in _all_imports():
        used[_package(path)].add(_package(path_of(name)))
    rows = ["| package | imports from |", "|---|---|"]
    for package in sorted(used, key=_from_the_top):
        others = ", ".join(f"`{other}`" for other in sorted(used[package] - {package}))
        rows.append(f"| `{package}` | {others or 'nothing of ours'} |")
    return "\n".join(rows)


def path_of(module: str) -> tuple[str, ...]:
    """The parts of a module's name below `cleveragents`."""
    return tuple(module.split(".")[1:])


def _words(layer: str) -> Sequence[str]:
    inner = sorted({p.parent.name for p in (SOURCE / layer).glob("*/__init__.py")})
    return [layer, MEANINGS[layer], *([" · ".join(inner)] if inner else [])]


def _span(pair: tuple[str, str]) -> tuple[int, int]:
    above, below = (LAYERS.index(name) for name in pair)
    return below - above, above


def _from_the_top(package: str) -> tuple[int, str]:
    layer = _layer(tuple(package.split("/")))
    return LAYERS.index(layer) if layer else len(LAYERS), package


def _all_imports() -> Iterator[tuple[tuple[str, ...], str]]:
    for file in _files():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            yield from ((_relative(file), n) for n in names if n.startswith("cleveragents."))


def _package(parts: tuple[str, ...]) -> str:
    """The folder of a module, at most two deep; a module at the top stands for itself."""
    folders = [
        part for part in parts if (SOURCE / "/".join(parts[: parts.index(part) + 1])).is_dir()
    ]
    return "/".join(folders[:2]) or parts[0]


def _layer(parts: tuple[str, ...]) -> str | None:
    name = "container" if parts[0].startswith("container") else parts[0]
    return name if name in LAYERS else None


def _relative(file: Path) -> tuple[str, ...]:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _files() -> Sequence[Path]:
    skipped = (SOURCE / "__init__.py", SOURCE / "__main__.py")
    return [file for file in sorted(SOURCE.rglob("*.py")) if file not in skipped]
