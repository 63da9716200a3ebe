"""What a terminal sends becomes names of keys."""

ESCAPE = "esc"
_SEQUENCES = {
    b"[A": "up", b"OA": "up",
    b"[B": "down", b"OB": "down",
    b"[5~": "page-up", b"[6~": "page-down",
    b"[H": "home", b"OH": "home", b"[1~": "home", b"[7~": "home",
    b"[F": "end", b"OF": "end", b"[4~": "end", b"[8~": "end",
}  # fmt: skip
_SINGLE = {
    0x03: "ctrl-c",
    0x04: "ctrl-c",
    0x08: "backspace",
    0x0A: "enter",
    0x0D: "enter",
    0x0E: "down",
    0x10: "up",
    0x15: "clear",
    0x7F: "backspace",
}
_ESC = 0x1B
_FIRST_FINAL, _LAST_FINAL = 0x40, 0x7E


class KeyReader:
    """Bytes may come in any portions; what an unfinished sequence is is known once nothing more
    comes (`rest`)."""

    def __init__(self) -> None:
        self._held = b""

    @property
    def waits(self) -> bool:
        """Whether there is a beginning of something."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[str]:
        self._held += data
        keys: list[str] = []
        while self._held:
            length, key = _first(self._held)
            if not length:
                break
            self._held = self._held[length:]
            if key:
                keys.append(key)
        return keys

    def rest(self) -> list[str]:
        """An Escape alone is a key; the beginning of anything else is dropped."""
        held, self._held = self._held, b""
        return [ESCAPE] if held[:1] == bytes([_ESC]) else []


def _first(data: bytes) -> tuple[int, str]:
    """How many bytes the first key takes, 0 if more must come; no name for what means nothing."""
    first = data[0]
    if first == _ESC:
        return _sequence(data)
    if first < 0x20 or first == 0x7F:
        return 1, _SINGLE.get(first, "")
    return _letter(data)


def _sequence(data: bytes) -> tuple[int, str]:
    if len(data) == 1:
        return 0, ""
    if data[1] == _ESC:  # pressed twice
        return 1, ESCAPE
    if data[1] not in b"[O":  # Alt with a letter
        return 2, ""
    for at in range(2, len(data)):
        if _FIRST_FINAL <= data[at] <= _LAST_FINAL:
            return at + 1, _SEQUENCES.get(data[1 : at + 1], "")
    return 0, ""


def _letter(data: bytes) -> tuple[int, str]:
    size = 1 if data[0] < 0x80 else 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
    if len(data) < size:
        return 0, ""
    text = data[:size].decode("utf-8", "replace")
    return size, text if text.isprintable() and len(text) == 1 else ""
