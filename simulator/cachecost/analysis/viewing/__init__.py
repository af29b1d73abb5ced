"""Sessions as they are looked at: their calls, the blocks of each beside those before, and what-ifs.

In: a bill's account and, where they are known, the requests. Out: a `SessionListing`, its sessions and their calls.
Open `listing.py` first.
"""
