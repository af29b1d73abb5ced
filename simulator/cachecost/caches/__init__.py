"""What simulated caches do with prompts: a prompt, its rules and its time come in, how its tokens divide goes out.

One file a kind of matching: `breakpoints`, `fixed_blocks`, `fixed_units`, `explicit_objects`. `expiry` says for all of
them when an entry can be read and when it expires, `hosts` puts together the caches of a replay, `inspection` and
`causes` find what a call paid for again and why. Open `breakpoints.py` first.
"""
