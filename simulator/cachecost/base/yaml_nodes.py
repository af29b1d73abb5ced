"""Parses YAML text into ruamel's nodes and stops at the depth limit."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from cachecost.base.limits import DEEPEST, TOO_DEEP, OutOfLimits, within_limits


def compose(text: str, version: tuple[int, int] | None = None) -> Any:
    """The root node of the one document in `text`; None for an empty one.

    Raises ruamel's YAMLError where it is no YAML, OutOfLimits where it is nested too deeply.
    """
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _limited_composer()
    if version is not None:
        yaml.version = version
    with warnings.catch_warnings(), within_limits():
        warnings.simplefilter("ignore")
        return yaml.compose(text)


@cache
def _limited_composer() -> Any:
    """ruamel's composer, stopped at the depth limit."""
    from ruamel.yaml.composer import Composer

    class Limited(Composer):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.depth += 1
            if self.depth > DEEPEST:
                raise OutOfLimits(*TOO_DEEP)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return Limited
