"""A small demo to look around in: sessions of Claude Code with every event, and a log of an agent of one's own.

The log holds its text. Its agent's system prompt ends with the date, and the most expensive moment is midnight: one
character changes, and all that had been cached behind it is written again. It also has a pause, a switch of models, a
compaction and a changed list of tools. Equal calls give equal bytes.

    cd tests && PYTHONPATH=.. python -m demo_sessions FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from tests.viewer_logs import CACHED, marked, replay_setup

from cachecost.conversations.logs import Logs, read_logs
from cachecost.simulation.workload import recorded_workload
from conversations.session_stores import write_lines
from event_project import event_project

JSON = dict[str, Any]
SESSION = "release-bot-1012"
"""The session of the log."""
MODEL, OTHER_MODEL = "claude-opus-5-5", "claude-sonnet-5-5"
BEGIN = datetime(2026, 10, 12, 23, 17, tzinfo=UTC)
MIDNIGHT = datetime(2026, 10, 13, tzinfo=UTC)
SECONDS_PER_CALL = 40.0

FILES = ("orders/checkout.py", "orders/refunds.py", "billing/invoices.py", "search/index.py", "mail/templates.py")
LINES = (
    "    total = sum(line.price_cents * line.count for line in order.lines)",
    "    if order.paid_at is None: raise NotPaid(order.id)",
    "    with database.transaction(): repository.save(order)",
    "    return Response(status=204, headers={'cache-control': 'no-store'})",
    "    logger.info('refund %s accepted for order %s', refund.id, order.id)",
    "    for attempt in range(1, RETRIES + 1): yield from deliver(message, attempt)",
    "    assert invoice.currency == customer.currency, invoice.id",
)
RULES = (
    "Read the merged changes since the last tag and sort them by what a customer would notice.",
    "Write one line a change, in the present tense, with the number of its pull request.",
    "Leave out refactorings, test-only changes and what was reverted before the release.",
    "Say what breaks first, then what is new, then what is mended.",
    "Never promise a date, never name a customer, never quote a commit message.",
    "Where a change needs a setting, show the setting as it is typed.",
)
QUESTIONS = (
    "What changed in checkout since 4.11? Look at the code, not only at the titles.",
    "Is the refund endpoint compatible with clients of 4.10?",
    "Write the notes for billing, one line a change.",
    "Which of these need a migration before the release?",
)


def text_of(lines: Sequence[str], characters: int, random: Random) -> str:
    """So many characters of these lines, numbered, in an order of their own."""
    chosen: list[str] = []
    while sum(map(len, chosen)) < characters:
        chosen.append(f"{len(chosen) + 1:4} {random.choice(lines)}\n")
    return "".join(chosen)[:characters]


def tool(name: str, words: str) -> JSON:
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": words}}, "required": ["path"]}
    return {"name": name, "description": f"{words} " * 30, "input_schema": schema}


TOOLS = (
    tool("read_file", "Reads a file of the repository, at most 2,000 lines."),
    tool("search_code", "Searches the repository for a regular expression and shows the lines around each match."),
    tool("list_pull_requests", "Lists pull requests that were merged since a tag, with their titles and labels."),
)
NEW_TOOL = tool("post_draft", "Posts a draft of the notes for review.")


@dataclass
class ReleaseBot:
    """Plays the agent of the log; `rows` are its requests with their times. `date` is how its prompt says the day."""

    date: str = "%Y-%m-%d"
    random: Random = field(default_factory=lambda: Random("release bot"))
    at: datetime = BEGIN
    model: str = MODEL
    tools: list[JSON] = field(default_factory=lambda: list(TOOLS))
    messages: list[JSON] = field(default_factory=list)
    rows: list[JSON] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rules = text_of(RULES, 30_000, Random("rules"))

    def system(self) -> str:
        return f"You write release notes for a shop.\n\nToday's date: {self.at.strftime(self.date)}\n\n{self.rules}"

    def ask(self, content: JSON) -> None:
        """One request, which ends with this block of a person or of a tool."""
        self.messages.append({"role": "user", "content": [content]})
        *before, last = self.messages
        body = {
            "model": self.model,
            "max_tokens": 8_000,
            "tools": self.tools,
            "system": [{"type": "text", "text": self.system(), **CACHED}],
            "messages": [*before, marked(last)],
        }
        stamp = self.at.isoformat().replace("+00:00", "Z")
        self.rows.append({"timestamp": stamp, "session": SESSION, "request": body})
        self.at += timedelta(seconds=SECONDS_PER_CALL)

    def work(self, calls: int) -> None:
        """A question, then tools: so many calls."""
        self.ask({"type": "text", "text": self.random.choice(QUESTIONS)})
        for _ in range(calls - 1):
            path, use = self.random.choice(FILES), f"toolu_{len(self.rows):04}"
            used = {"type": "tool_use", "id": use, "name": "read_file", "input": {"path": path}}
            words = {"type": "text", "text": f"I look at {path} next."}
            self.messages.append({"role": "assistant", "content": [words, used]})
            found = f"{path}\n{text_of(LINES, 5_000 + self.random.randrange(4_000), self.random)}"
            self.ask({"type": "tool_result", "tool_use_id": use, "content": found})
        self.messages.append({"role": "assistant", "content": [{"type": "text", "text": "That is all for this part."}]})

    def wait(self, minutes: float) -> None:
        self.at += timedelta(minutes=minutes)

    def compact(self) -> None:
        summary = "Summary so far: " + text_of(QUESTIONS, 4_000, self.random)
        self.messages = [{"role": "user", "content": [{"type": "text", "text": summary}]},
                         {"role": "assistant", "content": [{"type": "text", "text": "Understood."}]}]  # fmt: skip

    def play(self) -> list[JSON]:
        self.work(9)
        self.wait(14)
        self.work(10)
        self.model = OTHER_MODEL
        self.work(2)
        self.model = MODEL
        self.at = MIDNIGHT - timedelta(seconds=11.5 * SECONDS_PER_CALL)
        self.work(18)
        self.compact()
        self.work(5)
        self.tools = [*TOOLS, NEW_TOOL]
        self.work(6)
        return self.rows


def write_rows(path: Path, rows: list[JSON]) -> Path:
    """A log of these requests, billed as a replay of them says."""
    write_lines(path, rows)
    calls = list(read_logs(Logs([path])))
    simulation = recorded_workload("log", calls, replay_setup().with_recorded(calls, None)).simulation()
    for number, (row, call) in enumerate(zip(rows, calls, strict=True)):
        row["usage"] = {**simulation.row(call).usage.wire(), "output_tokens": 500 + number * 137 % 900}
    write_lines(path, rows)
    return path


def write_demo(folder: Path) -> Path:
    """The demo's sessions in `folder`/sessions."""
    event_project(sessions=5, copied=True, version="2.1.290").write(folder / "sessions" / "projects")
    write_rows(folder / "sessions" / "release-bot.jsonl", ReleaseBot().play())
    return folder


def write_fixed(folder: Path) -> Path:
    """`folder`/fixed.jsonl, the log of an agent that is told the month only."""
    return write_rows(folder / "fixed.jsonl", ReleaseBot("%B %Y").play())


if __name__ == "__main__":
    print(write_demo(Path(sys.argv[1])))
