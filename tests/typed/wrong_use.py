"""Mistakes of a user: `make lint` finds each, or an ignore too many."""

import cachecost

cachecost.compare(["none"])  # type: ignore[arg-type]
cachecost.replay("log.jsonl", tokens="tikoken")  # type: ignore[arg-type]
cachecost.replay("log.jsonl", modle="m")  # type: ignore[call-arg]
cachecost.compare("log.jsonl", ["none"]).plot("bars")  # type: ignore[arg-type]
cachecost.bill("log.jsonl").frame(money="decimals")  # type: ignore[arg-type]
print(cachecost.read("log.jsonl").nothing)  # type: ignore[union-attr]
