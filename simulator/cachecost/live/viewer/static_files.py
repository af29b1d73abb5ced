"""The files of the page, as they are in the package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

NAME = re.compile(r"[a-z0-9_-]+\.(html|css|js)")
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}
INDEX = "index.html"


def read_static_files() -> Mapping[str, bytes]:
    """The content of each file by its name; others than those of the page are left out."""
    folder = files("cachecost.live.viewer") / "static"
    found = (one for one in folder.iterdir() if NAME.fullmatch(one.name)) if folder.is_dir() else ()
    return {one.name: one.read_bytes() for one in found}


def content_type(name: str) -> str:
    """The type of a file by its suffix. Raises KeyError for one that is not served."""
    return TYPES[name.rpartition(".")[2]]
