"""In which form the bytes of a content are stored."""

from typing import Final


class Codec:
    """Plain numbers: a member of an enumeration takes a database twice as long to store."""

    RAW: Final = 0
    ZSTD: Final = 1
    CHUNKS: Final = 2
