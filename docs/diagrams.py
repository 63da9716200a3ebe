"""Draws the pictures of docs/explanation.md; `python docs/generate.py` puts them into docs/images/.

A picture is a list of shapes on a grid of points. Colours have meanings: teal is what counts now,
grey is what no longer counts, amber is a copy that is kept in case.
"""

from collections.abc import Callable, Mapping
from html import escape

INK, DIM, LINE, PAPER = "#1f2933", "#7b8794", "#c5ced6", "#fcfdfd"
FILLS = {
    "now": ("#d9f2ee", "#0f766e"),
    "gone": ("#eef1f4", "#9aa5b1"),
    "kept": ("#fdf1d8", "#b7791f"),
    "yours": ("#e3ecfb", "#3b66b0"),
    "plain": ("#ffffff", "#7b8794"),
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


class Picture:
    def __init__(self, width: int, height: int, title: str) -> None:
        self._size = (width, height)
        self._title = title
        self._shapes: list[str] = []

    def box(self, x: int, y: int, w: int, h: int, *lines: str, kind: str = "plain") -> None:
        fill, edge = FILLS[kind]
        dash = ' stroke-dasharray="4 3"' if kind == "gone" else ""
        self._shapes.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="6" fill="{fill}" '
            f'stroke="{edge}"{dash}/>'
        )
        first = y + h / 2 - (len(lines) - 1) * 8
        for number, line in enumerate(lines):
            ink = DIM if kind == "gone" or number else INK
            size = 12 if number else 13
            self._text(x + w / 2, first + number * 16, line, ink=ink, anchor="middle", size=size)

    def dot(self, x: int, y: int, name: str, *, kind: str = "now", below: str = "") -> None:
        fill, edge = FILLS[kind]
        self._shapes.append(
            f'<circle cx="{x}" cy="{y}" r="13" fill="{fill}" stroke="{edge}" stroke-width="1.5"/>'
        )
        ink = DIM if kind == "gone" else INK
        self._text(x, y, name, ink=ink, anchor="middle", size=11)
        if below:
            self._text(x, y + 27, below, ink=DIM, anchor="middle", size=11)

    def say(self, x: int, y: int, text: str, *, dim: bool = False, anchor: str = "start") -> None:
        self._text(x, y, text, ink=DIM if dim else INK, anchor=anchor)

    def arrow(
        self, path: str, *, kind: str = "plain", label: tuple[int, int, str] | None = None
    ) -> None:
        """`path` as SVG has it, its head at the end."""
        edge = FILLS[kind][1]
        dash = ' stroke-dasharray="4 3"' if kind == "gone" else ""
        self._shapes.append(
            f'<path d="{path}" fill="none" stroke="{edge}" stroke-width="1.5" '
            f'marker-end="url(#{kind})"{dash}/>'
        )
        if label is not None:
            x, y, text = label
            self._text(x, y, text, ink=edge, anchor="middle", size=12)

    def line(self, path: str) -> None:
        self._shapes.append(f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.5"/>')

    def svg(self) -> str:
        width, height = self._size
        heads = "".join(
            f'<marker id="{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="{edge}"/></marker>'
            for kind, (_, edge) in FILLS.items()
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                f'role="img" font-family="{FONT}">',
                f"<title>{escape(self._title)}</title>",
                f"<defs>{heads}</defs>",
                f'<rect width="{width}" height="{height}" rx="10" fill="{PAPER}"/>',
                *self._shapes,
                "</svg>\n",
            ]
        )

    def _text(
        self, x: float, y: float, text: str, *, ink: str, anchor: str, size: int = 13
    ) -> None:
        self._shapes.append(
            f'<text x="{x:g}" y="{y:g}" fill="{ink}" font-size="{size}" text-anchor="{anchor}" '
            f'dominant-baseline="central">{escape(text)}</text>'
        )


def model() -> Picture:
    it = Picture(860, 300, "An action becomes a plan, which works in sandboxes until it is applied")
    it.box(24, 30, 150, 56, "action", "a YAML file")
    it.arrow("M174 58 H258", label=(216, 46, "plan use"))
    it.box(260, 30, 340, 56, "plan", "decisions · steps · where it stands", kind="now")
    it.arrow("M600 58 H684", label=(642, 46, "plan apply"))
    it.box(686, 30, 150, 56, "your project", "all of it, or nothing", kind="yours")
    for x, name, what in ((260, "code", "git-checkout"), (376, "assets", "fs-directory")):
        it.box(x, 130, 108, 50, name, what, kind="now")
    it.box(492, 130, 108, 50, "db", "sqlite", kind="now")
    it.say(246, 155, "sandboxes", dim=True, anchor="end")
    it.arrow("M430 86 V128", label=(486, 108, "works only here"))
    it.arrow("M761 86 V155 H602", kind="yours", label=(700, 145, "copied once"))
    it.box(
        260,
        222,
        340,
        50,
        "checkpoint groups",
        "all sandboxes and the plan, at one moment",
        kind="kept",
    )
    it.arrow("M380 180 V220", label=(322, 201, "every decision"))
    it.arrow("M480 222 V182", kind="kept", label=(530, 201, "rollback"))
    return it


def group() -> Picture:
    it = Picture(860, 300, "Checkpoint groups share snapshots")
    labels = ("start", "decision 0", "before", "after", "decision 1", "before", "after")
    for number, label in enumerate(labels):
        x = 150 + number * 100
        it.box(x - 44, 40, 88, 46, f"g{number + 1}", label, kind="now")
        for row, resource in enumerate(("code", "db")):
            version = _version(number, resource)
            y = 130 + row * 54
            before = _version(number - 1, resource) if number else 0
            if version != before:
                it.dot(x, y, str(version), kind="kept")
            else:
                it.line(f"M{x - 87} {y} H{x + 10}")
                it.dot(x, y, str(version), kind="gone")
        it.dot(x, 238, "•", kind="now")
    for y, name in ((63, "group"), (130, "code"), (184, "db"), (238, "plan state")):
        it.say(24, y, name, dim=y != 63)
    it.say(24, 280, "amber: a new snapshot · grey: that of the group before, at no cost", dim=True)
    return it


def _version(number: int, resource: str) -> int:
    """Step 0 changes the code, step 1 changes both."""
    if resource == "code":
        return 1 + (number >= 3) + (number >= 6)
    return 1 + (number >= 6)


def timeline() -> Picture:
    it = Picture(860, 300, "A rollback goes forward: a new timeline starts at the target")
    names = ("g1", "g2", "g3", "g4", "g5", "g6")
    for number, name in enumerate(names):
        x = 80 + number * 100
        if number:
            it.line(f"M{x - 87} 80 H{x - 13}")
        it.dot(x, 80, name, kind="now" if number < 3 else "gone")
    it.line("M593 80 H667")
    it.dot(680, 80, "g7", kind="kept")
    it.say(680, 52, "safety group", dim=True, anchor="middle")
    it.say(430, 52, "superseded: kept, but no longer counts", dim=True, anchor="middle")
    it.arrow("M680 94 C680 150 300 150 284 96", kind="now", label=(480, 152, "plan rollback … g3"))
    it.line("M280 94 V200 H387")
    for number, name in enumerate(("g8", "g9", "g10")):
        x = 400 + number * 100
        it.line(f"M{x - 87} 200 H{x - 13}")
        it.dot(x, 200, name, kind="now")
    it.box(642, 182, 76, 36, "head", kind="now")
    it.arrow("M642 200 H616", kind="now")
    it.say(290, 236, "plan execute: the same group g3, a new way from there", dim=True)
    it.say(280, 268, "plan rollback … g7 would undo it: then g4 to g6 count again", dim=True)
    return it


def correction() -> Picture:
    it = Picture(860, 330, "A correction takes back one decision and what used its output")
    it.box(24, 24, 210, 40, "task", kind="now")
    rows = (
        ("0  write the schema", "now", "stays"),
        ("1  generate the client", "gone", "corrected: done again, with your advice"),
        ("2  write the changelog", "now", "stays, and so do its files"),
        ("3  test the client", "gone", "used the output of 1: done again"),
        ("4  publish the report", "gone", "used the output of 3: done again"),
    )
    for number, (name, kind, what) in enumerate(rows):
        y = 84 + number * 46
        it.box(64, y, 210, 34, name, kind=kind)
        it.line(f"M44 64 V{y + 17} H63")
        it.say(380, y + 17, what, dim=kind == "now")
    it.arrow("M274 147 C340 150 340 230 277 237", kind="kept", label=(352, 194, "uses"))
    it.arrow("M274 243 C320 246 320 278 277 283", kind="kept")
    it.say(
        24,
        316,
        "Files of 1, 3 and 4 go back to the checkpoint of 1, path by path; others stay.",
        dim=True,
    )
    return it


def apply() -> Picture:
    it = Picture(860, 262, "Apply: check everything, then change everything, or put it back")
    steps = (
        ("check all", "can each be merged?", "plain"),
        ("store the intent", "before anything changes", "plain"),
        ("folders and git", "files; one commit", "yours"),
        ("databases", "one transaction each", "yours"),
        ("applied", "the sandboxes go", "now"),
    )
    for number, (name, what, kind) in enumerate(steps):
        x = 24 + number * 166
        it.box(x, 36, 148, 56, name, what, kind=kind)
        if number:
            it.arrow(f"M{x - 18} 64 H{x - 2}")
    it.box(24, 140, 230, 52, "a conflict", "nothing has changed", kind="kept")
    it.arrow("M98 92 V138", kind="kept")
    it.box(
        356,
        140,
        314,
        52,
        "a failure, Ctrl-C, a kill",
        "put back, or finished by the next command",
        kind="kept",
    )
    it.arrow("M430 92 V138", kind="kept")
    it.arrow("M596 92 V138", kind="kept")
    it.say(
        24,
        230,
        "Until the intent is stored nothing is touched; then all of it, or as it was.",
        dim=True,
    )
    return it


PICTURES: Mapping[str, Callable[[], Picture]] = {
    "model": model,
    "group": group,
    "timeline": timeline,
    "correction": correction,
    "apply": apply,
}
