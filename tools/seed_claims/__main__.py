"""`python -m tools.seed_claims NAME`: a log of requests behind a claim, for `cachecost replay --tokens bytes`."""

from __future__ import annotations

import sys

from tools.seed_claims.requests import LOGS, lines

if len(sys.argv) != 2 or sys.argv[1] not in LOGS:
    sys.exit(f"usage: python -m tools.seed_claims {'|'.join(LOGS)}")
sys.stdout.writelines(lines(sys.argv[1]))
