"""Real clients, pinned, against `cachecost serve`: each runs one turn with two tool calls, so three calls of the API.

`.ci/clients` installs them; `python -m pytest -m clients` runs this. A client that is not there is skipped and says
why; in CI those of `REQUIRED_IN_CI` must be there.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from clients_bench import KEY, Done, Server
from clients_breakpoints import marked, placed, requests_of
from clients_sessions import SESSIONS, Session, script

from cachecost import cli
from cachecost.conversations.readers.qwen_code.reader import session_files

pytestmark = pytest.mark.clients
CLASSES = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


@dataclass(frozen=True)
class Ended:
    """A session that came to its end: what the client said, and what the server recorded, billed and printed."""

    session: Session
    client: Done
    record: Path
    bill: dict[str, Any]
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.record.read_text("utf-8").splitlines()]

    @property
    def loop(self) -> list[dict[str, Any]]:
        """The lines of the tool loop: its calls offer tools."""
        return [line for line in self.lines if line["request"].get("tools")]


@pytest.fixture(scope="session")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Ended]]]:
    """The sessions of all tests that were chosen, two at a time: most of the time a client waits, or starts."""
    chosen = (getattr(item, "callspec", None) for item in request.session.items)
    names = dict.fromkeys(spec.params["ended"] for spec in chosen if spec and "ended" in spec.params)
    pool = ThreadPoolExecutor(2)
    try:
        yield {name: pool.submit(ran, SESSIONS[name], tmp_path_factory.mktemp(name)) for name in names}
    finally:
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session", params=SESSIONS)
def ended(request: pytest.FixtureRequest, runs: dict[str, Future[Ended]]) -> Ended:
    return runs[request.param].result()


def ran(session: Session, folder: Path) -> Ended:
    server = Server(folder)
    try:
        client = session.run(server)
        bill = server.bill()
        return Ended(session, client, server.record, bill, *server.end())
    finally:
        server.close()


def test_the_session_comes_to_its_end(ended: Ended) -> None:
    """Two calls that end in a tool call, whose result comes with the next, then one that ends the turn."""
    assert ended.client.code == 0, ended.client.err
    assert "Done after 2 tool calls. (A simulated answer of cachecost serve.)" in ended.client.out, ended.client.err
    assert [line["status"] for line in ended.lines] == [200] * len(ended.lines)
    assert [line["response"]["stop_reason"] for line in ended.loop] == ["tool_use", "tool_use", "end_turn"]
    blocks = [block for message in ended.loop[-1]["request"]["messages"] for block in blocks_of(message)]
    assert [block["type"] for block in blocks if block["type"].startswith("tool_")] == ["tool_use", "tool_result"] * 2
    beside = [line["request"]["model"] for line in ended.lines if line not in ended.loop]
    assert beside == list(ended.session.beside)


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message["content"] if isinstance(message["content"], list) else []


def test_it_breakpoints_what_its_preset_breakpoints(ended: Ended) -> None:
    requests = requests_of(line["request"] for line in ended.loop)
    assert marked(requests) == placed(requests, ended.session.placement)


def test_the_bill_is_told_and_printed(ended: Ended) -> None:
    """What the client was told call by call is what the bill adds up, and the text begins with the same sentence."""
    usages = [line["usage"] for line in ended.lines]
    total = ended.bill["total"]
    assert {name: total["usage"][name] for name in CLASSES} == {name: sum(u[name] for u in usages) for name in CLASSES}
    assert total["calls"] == len(usages)
    assert Decimal(total["cost_usd"]) > 0
    assert ended.out.startswith(f"{ended.bill['verdict']}\n")
    assert f"{len(usages)} calls recorded in {ended.record}\n" in ended.err


def test_the_bill_names_a_loop_that_is_left_uncached(ended: Ended) -> None:
    loops = ended.bill["uncached_loops"]
    assert [loop["why"] for loop in loops] == ([ended.session.uncached] if ended.session.uncached else [])
    assert ("left uncached" in ended.out) is bool(ended.session.uncached)
    assert ended.session.uncached in " ".join(ended.out.split())


def test_replay_of_the_record_gives_the_same_usage(ended: Ended, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["replay", str(ended.record), "--tokens", "tiktoken", "--json"]
    code = cli.exit_code(lambda: cli.cachecost.main(args=words, prog_name="cachecost", standalone_mode=False))
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 0
    assert [row["usage"] for row in rows] == [line["usage"] for line in ended.lines]
    assert sum(Decimal(row["cost_usd"]) for row in rows) == Decimal(ended.bill["total"]["cost_usd"])


def test_the_key_is_nowhere(ended: Ended) -> None:
    for shown in (ended.record.read_text("utf-8"), ended.out, ended.err, json.dumps(ended.bill)):
        assert KEY not in shown
    assert len({line["workspace"] for line in ended.lines}) == 1


@pytest.mark.parametrize(("client", "name"), [("openai", "openai_loop.py"), ("google-genai", "gemini_loop.py")])
def test_an_sdk_knows_the_errors_and_the_list_of_models(client: str, name: str, tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        done = script(client, name, "errors")(server)
        out, _ = server.end()
    finally:
        server.close()
    assert done.code == 0, done.err
    assert "1 call refused at no charge: unknown model" in " ".join(out.split())


@pytest.mark.parametrize("ended", ["claude-code", "claude-code-1h", "claude-code-uncached"], indirect=True)
def test_claude_code_reckons_the_same_dollars(ended: Ended) -> None:
    """By its own price table, from the usage that it was told."""
    own = json.loads(ended.client.out)["total_cost_usd"]
    assert own == pytest.approx(float(ended.bill["total"]["cost_usd"]), abs=1e-9)


@pytest.mark.parametrize(
    ("ended", "counts_writes"), [("qwen-code", True), ("qwen-code-0.15", False)], indirect=["ended"]
)
def test_the_client_s_own_store_has_the_same_bill(ended: Ended, counts_writes: bool) -> None:
    """Qwen Code does not store what was written to the cache: it is in the input, in older versions nowhere."""
    (path,) = (ended.record.parent / "home").glob(".qwen/projects/*/chats/*.jsonl")
    stored = [call for call in session_files(path)[0].calls if not call.agent]
    inputs = [name for name in CLASSES[:3] if counts_writes or name != "cache_creation_input_tokens"]
    assert [(call.total_input, call.read, call.written, call.usage.output_tokens) for call in stored] == [
        (sum(line["usage"][name] for name in inputs), line["usage"][CLASSES[1]], 0, line["usage"][CLASSES[3]])
        for line in ended.loop
    ]
    assert {call.host for call in stored} == {"anthropic"}
