"""The scripts' own module `session` is there for the tests too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "scripts"))
