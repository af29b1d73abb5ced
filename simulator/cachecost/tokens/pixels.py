"""The size in pixels of an image, from the head of its file. Damaged data has no size; nothing is decoded."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Mapping

Size = tuple[int, int]
NOT_FRAMES = (0xC4, 0xC8, 0xCC)
"""JPEG markers among those of frames (0xC0 to 0xCF) that are none: they hold no size."""
ALONE = (0x01, *range(0xD0, 0xD9))
"""JPEG markers that no length follows."""


def decode_base64(data: object) -> bytes:
    """The bytes of base64 `data`; cut at the first damaged place, empty if it is not base64."""
    if not isinstance(data, str):
        return b""
    try:
        return b64decode(data[: len(data) // 4 * 4])
    except (Error, ValueError):
        return b""


def image_size(data: bytes) -> Size | None:
    """(width, height) of a PNG, JPEG, GIF or WebP file; None if `data` is none of these or has no size."""
    for head, read in READERS.items():
        if data.startswith(head):
            width, height = read(data) or (0, 0)
            return (width, height) if width and height else None
    return None


def _png(data: bytes) -> Size:
    return _big(data, 16, 4), _big(data, 20, 4)


def _gif(data: bytes) -> Size:
    return _little(data, 6, 2), _little(data, 8, 2)


def _jpeg(data: bytes) -> Size | None:
    """From the first frame header; the segments before it are skipped by their lengths."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in NOT_FRAMES:
            return _big(data, at + 7, 2), _big(data, at + 5, 2)
        at += _step(data, at, marker)
    return None


def _step(data: bytes, at: int, marker: int) -> int:
    if marker == 0xFF:  # padding before a marker
        return 1
    return 2 if marker in ALONE else 2 + max(2, _big(data, at + 2, 2))


def _webp(data: bytes) -> Size | None:
    kind = data[12:16]
    if data[8:12] != b"WEBP" or len(data) < 30:
        return None
    if kind == b"VP8X":
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    if kind == b"VP8L":
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return (_little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF) if kind == b"VP8 " else None


def _big(data: bytes, at: int, length: int) -> int:
    """A big-endian number; 0 past the end of the file."""
    return int.from_bytes(data[at : at + length], "big") if at + length <= len(data) else 0


def _little(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "little") if at + length <= len(data) else 0


READERS: Mapping[bytes, Callable[[bytes], Size | None]] = {
    b"\x89PNG\r\n\x1a\n": _png,
    b"\xff\xd8": _jpeg,
    b"GIF8": _gif,
    b"RIFF": _webp,
}
