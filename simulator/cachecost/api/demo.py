"""The files that come with the package, and the recording among them that every function takes."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import cachecost
from cachecost.api.keywords import named_keywords
from cachecost.api.setup import Recording, read

PACKAGE = Path(cachecost.__file__).parent
LOG = Path("scenarios/recordings/sessions/claude-code-56-minutes.jsonl")


def bundled_folder() -> Path:
    """Where the demo's files are: in an installed package, or the checkout."""
    installed = PACKAGE / "demo"
    return installed if installed.is_dir() else PACKAGE.parents[1]


@named_keywords()
def load_demo() -> Recording:
    """A session of Claude Code that comes with cachecost, 62 calls with their bills: a source for every function.

    `cachecost.load_demo().plot()` is a chart of its calls. Its texts are digests: sizes and repeats are the real ones.
    """
    return cast("Recording", read(bundled_folder() / LOG))
