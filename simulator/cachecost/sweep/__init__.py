"""Many replays: a scenario at each point of a grid and for each seed comes in, a table of rows goes out.

`runs` takes a sweep from its file to its table, `cells` computes one point, `workers` and `cluster` share the work out.
`totals` are the sums of many strategies at once, `montecarlo` those of many seeds; both ask the engine of
`caches/breakpoints.py`, with numbers for entries (`entries`). Open `runs.py` first.
"""
