"""`python -m tools.reference [ROOT]` brings the generated files of a checkout up to date and prints their paths."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.reference import update

for changed in update(Path(*sys.argv[1:2])):
    sys.stdout.write(f"updated {changed}\n")
