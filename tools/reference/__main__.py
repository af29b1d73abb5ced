"""`python -m tools.reference [ROOT]` brings the generated files of a checkout up to date and prints their paths.

Exit code 3, and nothing written: a model has no price.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cachecost.base.errors import CannotEvaluate
from tools.reference import update


def main(root: Path = Path()) -> int:
    try:
        changed = update(root)
    except CannotEvaluate as error:
        sys.stderr.write(f"{error}\n")
        return 3
    sys.stdout.writelines(f"updated {path}\n" for path in changed)
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
