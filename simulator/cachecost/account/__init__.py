"""Why calls paid again: one table of causes for every command.

`causes.toml` has one table a cause; `causes.py` loads and checks it. The room is below `caches/`, which name causes.
"""
