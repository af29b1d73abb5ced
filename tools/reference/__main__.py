"""`python -m tools.reference [ROOT]` brings the generated files of a checkout up to date and prints their paths.

A model without a price is a warning on stderr: its prices are blank on the page of models.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.reference import update
from tools.reference.models import missing_prices


def main(root: Path = Path()) -> int:
    sys.stdout.writelines(f"updated {path}\n" for path in update(root))
    sys.stderr.writelines(f"{line}\n" for line in missing_prices())
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
