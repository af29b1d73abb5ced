"""The name of a scenario under `--set`: its report and its baseline have a folder of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

MOST = 100
"""Characters of a name at most: folders may have 255 bytes."""
DIGEST = 8
UNSAFE = re.compile(r"[^\w.+=,@-]+")
"""What a folder should not be called, on any system."""


def name_with_sets(name: str, sets: Sequence[str]) -> str:
    """ "NAME@a.b=V,c=W": by path, the last value of each, in any order of `sets`; NAME alone without any.

    Where characters of a value are no part of a folder's name, or the name is long, a digest of the values ends it.
    """
    values = {path.strip(): value.strip() for path, _, value in (text.partition("=") for text in sets)}
    values.pop("name", None)  # it is `name` already
    exact = ",".join(f"{path}={value}" for path, value in sorted(values.items()))
    shown = UNSAFE.sub("-", exact)
    if shown != exact or len(shown) > MOST:
        shown = f"{shown[:MOST]}-{sha256(exact.encode()).hexdigest()[:DIGEST]}"
    return f"{name}@{shown}" if shown else name
