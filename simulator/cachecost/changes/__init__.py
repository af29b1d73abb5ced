"""What a person can change, one catalogue: rewrites of calls, and their replays.

In: a workload's calls. Out: calls as they would have been sent, replayed under the same setup. Open `steps.py` first
(steps, replays); `catalogue.py` has the options that `whatif` prices, `fixes.py` the fixes that `explain` nets.
"""
