"""Tokens of an image: the size in pixels from the head of its file, and the formulas of the makers (`images.toml`).

Damaged data has no size; nothing is decoded.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from cachecost.base.errors import CannotEvaluate, nearest
from cachecost.prompts.render import CannotCount

DATA = "images.toml"
INSTEAD = "Leave it out of what is counted, or use --tokens bytes"
Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tier:
    """The largest image of a model: longest side in pixels, rounded up to whole patches, and tokens."""

    edge: int
    tokens: int


@dataclass(frozen=True, slots=True)
class UnknownMedia:
    """The sizes assumed where a request does not state them: `image` in pixels, `pages` of a PDF, the size of a `page`
    in points, and the `characters` on one."""

    image: Size
    pages: int
    page: Size
    characters: int


def image_tokens(width: int, height: int, generation: str) -> int:
    """Tokens of an image of so many pixels, without its overhead. Raises CannotCount where no formula is
    known of a maker, CannotEvaluate for an unknown generation."""
    if generation in media_data()["tiles"]:
        # scaled down to fit a square, then its short side, in tiles of a side, all in pixels
        formula: Mapping[str, int] = media_data()["tiles"][generation]["formula"]
        long, short = max(width, height), min(width, height)
        shrink = min(1.0, formula["square"] / long)
        shrink *= min(1.0, formula["short"] / (short * shrink))
        across, down = (max(1, -(-round(side * shrink) // formula["side"])) for side in (long, short))
        return formula["base"] + formula["tile"] * across * down
    if generation in media_data()["uncounted"]:
        raise CannotCount(f"{width}x{height} image: {media_data()['uncounted'][generation]['why']}. {INSTEAD}")
    return _patches(*fit_image(width, height, tier_of(generation)))


def page_tokens(width: int, height: int) -> int:
    """Tokens of the image of a PDF's page, of any size (only its shape matters)."""
    tier = _tier(media_data()["page"]["tier"])
    scale = -(-tier.edge // max(1, min(width, height)))
    return _patches(*fit_image(width * scale, height * scale, tier))


def unknown() -> UnknownMedia:
    """The sizes assumed where none is stated: a guess."""
    row = media_data()["unknown"]
    width, height = media_data()["unknown_image"]["size"]
    page_width, page_height = row["page"]
    return UnknownMedia((width, height), row["pages"], (page_width, page_height), row["characters"])


def unseen_margins() -> dict[str, float]:
    """The relative errors of the counts of what is not in a request, by content kind (`margins.KINDS`)."""
    return {f"unseen_{kind}": media_data()[f"unknown_{kind}"]["error_margin"] for kind in ("image", "pdf")}


def tier_of(generation: str) -> Tier:
    """The tier of a tokenizer generation. Raises CannotEvaluate naming the nearest."""
    known: Mapping[str, Any] = media_data()["generations"]
    if generation not in known:
        raise CannotEvaluate(
            f"tokenizer generation '{generation}' has no image tier: expected one of {', '.join(known)}"
            f"{nearest(generation, known)}"
        )
    return _tier(known[generation]["tier"])


def fit_image(width: int, height: int, tier: Tier) -> Size:
    """The size an image is scaled down to: the largest of its shape that fits `tier`; its own where it fits.

    The long side is searched, the short one rounded half to even, as the documentation does it.
    """
    if _fits(width, height, tier):
        return width, height
    if height > width:
        short, long = fit_image(height, width, tier)[::-1]
        return short, long

    def short_of(long: int) -> int:
        return max(round(long / (width / height)), 1)

    low, high = 1, width
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _fits(middle, short_of(middle), tier) else (low, middle - 1)
    return low, short_of(low)


def _fits(width: int, height: int, tier: Tier) -> bool:
    patch: int = media_data()["patch"]["pixels"]
    return -(-max(width, height) // patch) * patch <= tier.edge and _patches(width, height) <= tier.tokens


def _patches(width: int, height: int) -> int:
    patch: int = media_data()["patch"]["pixels"]
    return -(-width // patch) * -(-height // patch)


def _tier(name: str) -> Tier:
    row = media_data()["tiers"][name]
    return Tier(row["edge"], row["tokens"])


@cache
def media_data() -> dict[str, Any]:
    """`images.toml` as parsed."""
    return tomllib.loads(files("cachecost.tokens").joinpath(DATA).read_text(encoding="utf-8"))


NOT_FRAMES = (0xC4, 0xC8, 0xCC)
"""JPEG markers among those of frames (0xC0 to 0xCF) that are none: they hold no size."""
ALONE = (0x01, *range(0xD0, 0xD9))
"""JPEG markers that no length follows."""


def image_size(data: bytes) -> Size | None:
    """(width, height) of a PNG, JPEG, GIF or WebP file; None if `data` is none of these or has no size."""
    for head, read in SIZE_READERS.items():
        if data.startswith(head):
            width, height = read(data) or (0, 0)
            return (width, height) if width and height else None
    return None


def _jpeg(data: bytes) -> Size | None:
    """From the first frame header; the segments before it are skipped by their lengths."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in NOT_FRAMES:
            return _big(data, at + 7, 2), _big(data, at + 5, 2)
        if marker == 0xFF:  # padding before a marker
            at += 1
        else:
            at += 2 if marker in ALONE else 2 + max(2, _big(data, at + 2, 2))
    return None


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


SIZE_READERS: Mapping[bytes, Callable[[bytes], Size | None]] = {
    b"\x89PNG\r\n\x1a\n": lambda data: (_big(data, 16, 4), _big(data, 20, 4)),
    b"\xff\xd8": _jpeg,
    b"GIF8": lambda data: (_little(data, 6, 2), _little(data, 8, 2)),
    b"RIFF": _webp,
}
