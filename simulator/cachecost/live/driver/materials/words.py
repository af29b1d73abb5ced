"""Filler text: plain words, the same for the same digest, other ones from the first words on for another."""

from __future__ import annotations

from random import Random

LIST = (
    "air all arm art bag bar bed big bit boat body bone book box bread bus cake call camp card care case cat chair "
    "city clay clock cloud coal coat cold cook corn cow cup dark day deep desk dish dog door dream dry dust ear "
    "earth edge egg end eye face farm fast field fire fish floor flower food foot forest fork game garden gate girl "
    "glass gold grass green hair half hall hand hat head heart hill home horse house ice iron island key king "
    "kitchen lake lamp land leaf leg letter light line lion list long market milk mind moon morning mountain "
    "mouth music name neck nest new night nine nose ocean old orange page paint paper park party path pen pig pin "
    "pipe place"
)
WORDS = tuple(LIST.split())
"""128 of them, so a word tells seven bits."""
BITS = 7
TELLING = 5
"""The first words tell 35 bits of the digest, so no text is shorter."""


def text(digest: bytes, words: int) -> str:
    """So many words (at least TELLING), drawn from `digest`."""
    told = int.from_bytes(digest)
    first = [WORDS[told >> (BITS * number) & 127] for number in range(TELLING)]
    return " ".join(first + Random(told).choices(WORDS, k=max(0, words - TELLING)))
