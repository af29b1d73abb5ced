"""Small sessions as Claude Code writes them, with usage that follows from what each call finds in the cache."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cachecost.analysis.bill.account import BillAccount, account_for
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.sessions.reading import SessionReading
from conversations.session_stores import write_lines

BEGIN = datetime(2026, 3, 2, 23, 50, tzinfo=UTC)
OPUS, SONNET = "claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929"
ANSWERED_AFTER_S = 2


class SessionWriter:
    """The lines of one transcript. `at` is in seconds since BEGIN; `cached` is what the next call could read."""

    def __init__(self, session: str, project: str, agent: str = "", at: float = 0.0, cached: int = 0) -> None:
        self.session, self.project, self.agent = session, project, agent
        self.at, self.cached = at, cached
        self.version = "2.1.4"
        self.lines: list[dict[str, Any]] = []

    def add(self, kind: str, **fields: Any) -> None:
        stamp = (BEGIN + timedelta(seconds=self.at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        parent = self.lines[-1]["uuid"] if self.lines else None
        where = {"uuid": f"{self.session}{self.agent}-{len(self.lines)}", "parentUuid": parent, "timestamp": stamp}
        agent = {"agentId": self.agent, "isSidechain": True} if self.agent else {"isSidechain": False}
        about = {"sessionId": self.session, "cwd": self.project, "version": self.version}
        self.lines.append({"type": kind, **where, **about, **agent, **fields})

    def write_message(self, text: str, after_s: float = 5) -> None:
        """A message of a person, or of the agent that starts this one."""
        self.at += after_s
        self.add("user", message={"role": "user", "content": text})

    def return_result(self, after_s: float = 1) -> None:
        self.at += after_s
        self.add("user", message={"role": "user", "content": [{"type": "tool_result", "content": "ok"}]})

    def compact(self) -> None:
        self.add("system", subtype="compact_boundary", content="Conversation compacted")
        self.add("user", isCompactSummary=True, message={"role": "user", "content": "A summary."})

    def answer(self, read: int, written: int, model: str = OPUS, output: int = 100, ttl: str = "5m") -> None:
        """A call that reads and writes so many tokens, and answers in two seconds."""
        self.at += ANSWERED_AFTER_S
        usage = {
            "input_tokens": 3,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation": {f"ephemeral_{ttl}_input_tokens": written},
            "output_tokens": output,
        }
        name = f"msg_{self.session[:8]}{self.agent}{self.at:.0f}"
        content = [{"type": "text", "text": "An answer that is never shown."}]
        message = {"id": name, "role": "assistant", "model": model, "content": content, "usage": usage}
        self.add("assistant", requestId=f"req_{name}", message=message)

    def loop(self, times: int, read: int) -> int:
        """Steps of a tool loop, each of which reads what was cached and writes 500 tokens; what is cached after."""
        for _ in range(times):
            self.return_result()
            self.answer(read, 500)
            read += 500
        return read

    def save(self, path: Path) -> Path:
        return write_lines(path, self.lines)


MAIN = "1e0816ef-0000-4000-8000-000000000001"
SMALL = "1e0816f0-0000-4000-8000-000000000002"


def write_sessions(folder: Path) -> Path:
    """Two projects of the same folder name: a session with most events and two sub-agents, and a small one."""
    main = SessionWriter(MAIN, "/home/ann/work/api")
    main.write_message("Why does the login test fail on <b>Windows</b>? Look at the newest log, then tell me, please.")
    main.answer(18_000, 12_000)
    at = main.loop(4, 30_000)
    main.write_message("Fix it.", after_s=780)
    main.answer(0, at + 200)
    at = main.loop(1, at + 200)
    main.write_message("<command-name>/model</command-name>\n<command-message>model</command-message>")
    main.answer(0, at + 300, model=SONNET)
    main.return_result()
    main.answer(at + 300, 600, model=SONNET)
    agents = [SessionWriter(MAIN, main.project, agent, main.at + 1) for agent in ("a1", "b2")]
    for agent in agents:
        agent.write_message("Search the code.", after_s=0)
        agent.answer(0, 9_000, model=SONNET)
        agent.return_result()
        agent.answer(9_000, 400, model=SONNET)
        agent.save(folder / "work" / f"agent-{agent.agent}.jsonl")
    main.at += 20
    main.compact()
    main.return_result()
    main.answer(18_000, 4_000, model=SONNET)
    main.save(folder / "work" / f"{MAIN}.jsonl")
    small = SessionWriter(SMALL, "/home/ann/play/api", at=86_400)
    small.write_message("Hello?")
    small.answer(0, 20_000, ttl="1h")
    small.write_message("Go on.", after_s=60)
    small.answer(20_000, 100, ttl="1h")
    small.save(folder / "play" / f"{SMALL}.jsonl")
    return folder


def list_prices() -> CallPrices:
    return CallPrices(PriceBook.load(None, None), RuleBook(Assumptions(), None))


def account_in(folder: Path) -> BillAccount:
    """The account of the transcripts in a folder."""
    return account_for(SessionReading(None).read_all(sorted(folder.rglob("*.jsonl"))).sessions, list_prices())
