"""Microseconds of a simulated call in a grid, beside the block engine of tokenbill on the same request log.

    python benchmarks/grid_peer.py [--peers BIN] [--runs 3] [--json]

Both simulate the calls of a log of 20 conversations of 100 requests; reading it is in neither. Here it is the grid of
grid.py (8 strategies × 3 models × 2 TTLs), there one replay for each of three placements of breakpoints, the fastest of
which counts. `pip install tokenbill==0.2.0` in a virtual environment of its own, whose `bin` is BIN, installs it.
Processor time, the least of the runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from cachecost.conversations.model import Conversation
from cachecost.conversations.sessions import read_conversations
from grid import MICRO, grid, seconds
from growing_log import Shape, write_log

CALLS_SHAPE = Shape(conversations=20, requests=100)
CHARS_PER_TOKEN = 4
ENGINE = """
import sys
from pathlib import Path
from time import process_time
from tokenbill.adapters.trace_v1 import TraceV1Adapter
from tokenbill.core.cache_rules import RulesTable
from tokenbill.core.lanes import group_lanes
from tokenbill.core.records import ContentTier
from tokenbill.core.types import IngestOptions, Policy
from tokenbill.pipeline.common import load_rate_card
from tokenbill.sim.block_replay import BlockReplayer

key = b"k" * 32
options = IngestOptions(content_tier=ContentTier.FINGERPRINT, name_key=key, name_key_id="k", principal_key=key,
                        principal_key_id="k")
read = TraceV1Adapter().read(Path(sys.argv[1]), options)
lanes = group_lanes(read.requests, read.events, read.sessions)
prices = load_rate_card(rates=(), contract=None, model_prices=())
took = []
for placement in ("end", "static_plus_end", "every_15") * int(sys.argv[2]):
    policy, start = Policy(name=placement, breakpoint_policy=placement), process_time()
    result = BlockReplayer().replay(
        lanes, policy, mode="documented", pricer=prices, rules=RulesTable(), calibration=None
    )
    assert result.n_requests == len(read.requests) and not result.lanes_skipped
    took.append((process_time() - start) / result.n_requests)
print(min(took))
"""


def write_trace(log: Path, trace: Path) -> None:
    """The requests of the log as tokenbill reads them, each with a bill that read most of it."""
    runs: dict[str, list[str]] = {}
    with log.open(encoding="utf-8") as lines, trace.open("w", encoding="utf-8") as out:
        for line in lines:
            row = json.loads(line)
            run = runs.setdefault(_first_text(row["request"]), [str(len(runs))])
            out.write(json.dumps(_trace_row(row, run[0], len(run) - 1, len(line) // CHARS_PER_TOKEN)) + "\n")
            run.append("")


def _first_text(request: dict[str, Any]) -> str:
    content = request["messages"][0]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def _trace_row(row: dict[str, Any], run: str, index: int, tokens: int) -> dict[str, Any]:
    request, read = row["request"], tokens * 9 // 10 if index else 0
    return {
        "schema": "tokenbill/trace@1",
        "run_id": run,
        "index": index,
        "stop_reason": "end_turn",
        "ts": datetime.fromisoformat(row["timestamp"]).timestamp(),
        "system": "".join(block["text"] for block in request["system"]),
        **{name: request[name] for name in ("model", "tools", "messages")},
        "cache_breakpoints": json.dumps(request).count('"cache_control"'),
        "usage": {
            "input_tokens": 0,
            "output_tokens": 50,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": tokens - read,
        },
    }


def measured(peers: Path | None, runs: int) -> dict[str, float]:
    """Microseconds a call of each, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        log, trace = Path(folder, "log.jsonl"), Path(folder, "trace.jsonl")
        write_log(log, CALLS_SHAPE)
        own = min(_own_us(read_conversations(log)[0]) for _ in range(runs))
        if peers is None:
            return {"grid_us": own}
        write_trace(log, trace)
        command = [str(peers / "python"), "-c", ENGINE, str(trace), str(runs)]
        other = float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout) * MICRO
    return {"grid_us": own, "tokenbill_us": other, "times": other / own}


def _own_us(conversations: list[Conversation]) -> float:
    took, calls = seconds(lambda first: grid(first, *conversations[1:]), conversations[0])
    return took / calls * MICRO


def main() -> int:
    parser = argparse.ArgumentParser(description="Microseconds of a simulated call, beside tokenbill's engine.")
    parser.add_argument("--peers", type=Path, metavar="BIN", help="folder with the Python that has tokenbill")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measured(options.peers, options.runs)
    if options.json:
        print(json.dumps(found))
        return 0
    print(f"grid       {found['grid_us']:6.1f} µs a call")
    if options.peers is None:
        print("tokenbill is not measured: --peers BIN names the folder of the Python that has it")
    else:
        print(f"tokenbill  {found['tokenbill_us']:6.1f} µs a call   {found['times']:.1f} × the grid's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
