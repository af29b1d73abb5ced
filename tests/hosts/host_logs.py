"""Request logs for any host, replayed by the command: bodies go in, rows of its `--json` come out.

Texts are as long as a test says, counted by `--tokens bytes`: a block is the bytes of its JSON, nothing is hidden.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from bodies import Body
from cachecost.cli import cachecost, exit_code

SATURDAY = "2026-11-21T12:00:00+00:00"
"""A day on which every model has rules and prices, at an hour that is nobody's peak."""
Row = Mapping[str, Any]


class Sent(NamedTuple):
    """A request `at` so many seconds after the first; `host` where the log names one."""

    at: float
    request: Body
    host: str | None = None


class Told(NamedTuple):
    """What a command said, and with which exit code."""

    code: int
    out: str
    words: str

    @property
    def rows(self) -> list[Row]:
        return [json.loads(line) for line in self.out.splitlines()]


def ask(*command: str | Path) -> Told:
    """What `cachecost COMMAND` does, in this process."""
    words = [str(word) for word in command]
    with CliRunner().isolation() as (out, err, _):
        code = exit_code(lambda: cachecost.main(args=words, prog_name="cachecost", standalone_mode=False))
        sys.stdout.flush()
        return Told(code, out.getvalue().decode(), err.getvalue().decode())


def write_log(path: Path, model: str, calls: Iterable[Sent], begin: str = SATURDAY) -> Path:
    """A request log of `calls`, the first at `begin`; of `model` where the request names none of its own."""
    start = datetime.fromisoformat(begin)
    lines = []
    for at, request, host in calls:
        named = request if request["model"] != ANY else {**request, "model": model}
        line = {"timestamp": (start + timedelta(seconds=at)).isoformat(), "request": named}
        lines.append(json.dumps({**line, "host": host} if host else line))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


ANY = "any"


def body(*messages: Body, **fields: Any) -> Body:
    """A request of whichever model the log is of."""
    return {"model": ANY, "max_tokens": 64, "messages": list(messages), **fields}


def replay(
    folder: Path, host: str, model: str, *calls: Sent, begin: str = SATURDAY, words: tuple[str, ...] = ()
) -> list[Row]:
    """The rows of `calls`, by `cachecost replay --host … --tokens bytes --json`."""
    log = write_log(folder / "log.jsonl", model, calls, begin)
    result = ask("replay", log, "--host", host, "--tokens", "bytes", "--json", *words)
    assert result.code == 0, result
    return result.rows


def usages(rows: Iterable[Row]) -> list[tuple[int, int, int]]:
    """What each row has read, written (for short or for long) and left uncached."""
    usages = [row["usage"] for row in rows]
    names = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")
    return [(usage[names[0]], usage[names[1]], usage[names[2]]) for usage in usages]


def reads(rows: Iterable[Row]) -> list[int]:
    return [read for read, _, _ in usages(rows)]


def causes(rows: Iterable[Row]) -> list[str]:
    return [row["cause"] for row in rows]


def every(seconds: float, *requests: Body) -> list[Sent]:
    """Requests one after another, `seconds` apart."""
    return [Sent(number * seconds, request) for number, request in enumerate(requests)]
