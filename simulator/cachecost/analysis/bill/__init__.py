"""What billed calls cost, what was paid for again, why, and what would have cost less.

In: session files and logs with bills (`SessionFile`, `Call`), rules and prices. Out: a `BillAccount` and its
rewrites, each with a cause; a `BillSummary`; timelines; advice; the findings of `explain` for what was billed.
Open `account.py` first, then `rewrites.py`: how a rewrite is found and what shows its cause.
"""
