"""What the next message of a session costs, warm, cold and after a change.

In: the bills of a session, or its requests. Out: a `SessionState`, the price of its next message, and alternatives.
Open `state.py` first. The status line and hooks load it alone: it must not import rules, prices or the bill.
"""
