"""Faults planted into logs of plain request bodies, and what each costs by a second, independent replay.

- `logs`, `recorded`: healthy logs, made up or from recordings without content; `healthy`: more shapes of them
- `fault`: a kind of fault as three functions of logs (planted, fixed, spared), and what its fix nets
- `tool_faults` … `recorded_faults`, `catalogue`, `pairs`: the faults; `policies`: what can be done about pauses
- `prices`: the naive model of the rulebook with prices written down again; `check`: explain's answer beside it
- `random_logs`: logs by seed, for what must hold whatever is sent
"""
