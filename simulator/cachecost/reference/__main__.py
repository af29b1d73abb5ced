"""`python -m cachecost.reference FOLDER` writes the pages."""

from __future__ import annotations

import sys
from pathlib import Path

from cachecost.reference import write

write(Path(sys.argv[1]))
