"""The engine: calls of a strategy or a recording come in, a ledger goes out.

`setup` holds rules, prices, tokens, host and date, `workload` the calls, `engine` prepares and makes each of them,
`strategy_ledger` replays a strategy. Open `engine.py` first.
"""
