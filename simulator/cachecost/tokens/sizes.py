"""Facts counted by a formula or a table: an image or page by its size, a provider's tool by its type."""

from __future__ import annotations

import re

from cachecost.prompts.counting import CannotCount
from cachecost.tokens.calibration import CLAUDE
from cachecost.tokens.images import INSTEAD, image_tokens, page_tokens, unruled_file_tokens
from cachecost.tokens.parts import FILE
from cachecost.tokens.provider_tools import provider_tool_tokens

SIZED = re.compile(r"(\d{1,9})x(\d{1,9}) (image|page)", re.ASCII)


def image_fact(width: int, height: int) -> str:
    """The fact for an image of this size in pixels."""
    return f"{width}x{height} image"


def page_fact(width: int, height: int) -> str:
    """The fact for a page of this size in points."""
    return f"{width}x{height} page"


def constant_of(fact: str) -> str:
    """The structure constant of a fact, without its size: "image" for "330x291 image"."""
    sized = SIZED.fullmatch(fact)
    return sized[3] if sized else fact


def size_tokens(fact: str, generation: str) -> int:
    """Tokens of a fact by formula or table, without its constant; 0 where neither applies. Raises CannotEvaluate."""
    sized = SIZED.fullmatch(fact)
    if fact == FILE:
        return unruled_file_tokens()
    if sized is None:
        return provider_tool_tokens(fact, generation)
    width, height = max(1, int(sized[1])), max(1, int(sized[2]))
    if sized[3] == "image":
        return image_tokens(width, height, generation)
    if not generation.startswith(CLAUDE):
        raise CannotCount(f"{fact} of a PDF: no rule gives its tokens in {generation}. {INSTEAD}")
    return page_tokens(width, height)
