"""What each call paid more than it must have, by cause, and what the fix of each cause nets.

In: a workload, replayed. Out: an `Explanation` of findings, whose dollars add up to what the fixes save together.
Open `explaining.py` first; `changes/fixes.py` has the fixes, `account/causes.toml` says which of them a cause has.
"""
