"""What holds for every conversation on every host: tokens add up, breakpoints mean what the host's rules say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from host_logs import body
from host_models import GPU, LIKE_CLAUDE, MODELS, UNMARKED
from hypothesis import given, settings
from hypothesis import strategies as st

from bodies import BREAKPOINT, Body, assistant, marked, text, tool, user
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Layer
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import Breakpoint, Request
from cachecost.prompts.translated import translate
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup

DAY = date(2026, 11, 21)
RULES = RuleBook()
FEW = settings(max_examples=15, deadline=None)
SIZES = st.integers(60, 1_500)


@st.composite
def blocks_of(draw: st.DrawFn, name: str) -> list[Body]:
    """One to three blocks, perhaps one of them marked."""
    sizes = draw(st.lists(SIZES, min_size=1, max_size=3))
    chosen = draw(st.sampled_from([-1, -1, *range(len(sizes))]))
    made = [text(size, f"{name}.{number}") for number, size in enumerate(sizes)]
    return [marked(one) if number == chosen else one for number, one in enumerate(made)]


@st.composite
def conversations(draw: st.DrawFn) -> list[Body]:
    """Requests that grow by turns; at most four breakpoints each, as other hosts than OpenAI refuse more."""
    head: Body = {}
    if draw(st.booleans()):
        head["tools"] = [marked(tool(1_200)) if draw(st.booleans()) else tool(1_200)]
    if draw(st.booleans()):
        head["system"] = draw(blocks_of("s"))
    if draw(st.booleans()):
        head["cache_control"] = BREAKPOINT
    messages: list[Body] = []
    sent = []
    for turn in range(draw(st.integers(1, 4))):
        messages = [_bare(one) for one in messages]
        messages = [*messages, *([assistant(text(draw(SIZES), f"a{turn}"))] if turn else [])]
        messages = [*messages, user(*draw(blocks_of(f"u{turn}")))]
        sent.append(body(*messages, **head))
    return sent


def _bare(message: Body) -> Body:
    blocks = [{key: value for key, value in one.items() if key != "cache_control"} for one in message["content"]]
    return {**message, "content": blocks}


def uncached(request: Body) -> Body:
    system = _bare({"content": request.get("system", [])})["content"]
    tools = _bare({"content": request.get("tools", [])})["content"]
    bare = {**request, "messages": [_bare(one) for one in request["messages"]], "system": system, "tools": tools}
    return {key: value for key, value in bare.items() if key != "cache_control"}


def length(request: Body) -> int:
    """The bytes of all blocks as JSON, which are their tokens here."""
    parsed = Intake().body(uncached(request))
    blocks = [block for message in parsed.thread.messages() for block in message.blocks]
    return sum(block.size for block in (*parsed.tools.blocks, *parsed.system.blocks, *blocks))


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> PriceBook:
    path: Path = tmp_path_factory.mktemp("prices") / "gpu.toml"
    path.write_text(GPU, encoding="utf-8")
    return PriceBook.load(path)


def rows(prices: PriceBook, host: str, model: str, requests: Sequence[Body]) -> list[CallRow]:
    intake = Intake()
    simulation = Simulation(ReplaySetup(RULES, prices, host, tokens="bytes"))
    bodies = (intake.body({**request, "model": model}) for request in requests)
    return [simulation.row(Call(one, 10.0 * number, DAY)) for number, one in enumerate(bodies)]


@FEW
@given(requests=conversations())
def test_read_written_and_uncached_are_the_whole_prompt_on_every_host(prices: PriceBook, requests: list[Body]) -> None:
    for host, model in MODELS:
        for row, request in zip(rows(prices, host, model, requests), requests, strict=True):
            if row.error is not None:
                assert row.error.startswith(("cache_control: Extra inputs", "A maximum of 4 blocks")), (host, row.error)
                continue
            usage = row.usage
            assert usage.read + usage.write_5m + usage.write_1h + usage.input_tokens == length(request), host
            assert min(usage.read, usage.write_5m, usage.write_1h, usage.input_tokens) >= 0, host


@FEW
@given(requests=conversations())
def test_breakpoints_are_of_no_matter_where_a_host_has_none(prices: PriceBook, requests: list[Body]) -> None:
    for host, model in UNMARKED:
        plain = rows(prices, host, model, [uncached(one) for one in requests])
        assert rows(prices, host, model, requests) == plain, host
        assert all(row.usage.write == 0 or host == "moonshot" for row in plain), host  # Kimi K3 charges them all


def places(request: Request) -> set[tuple[Layer, int, int]]:
    return {breakpoint.block_key for breakpoint in request.breakpoints}


def ends(request: Request) -> set[tuple[Layer, int, int]]:
    """Where a host may put a breakpoint of its own: the ends of user messages, and of the developer messages."""
    users = [node for node in request.thread.back() if node.message and node.message.role == "user"]
    made = [Breakpoint(Layer.MESSAGES, len(node.message.blocks) - 1, "5m", node) for node in users if node.message]
    system = [Breakpoint(Layer.SYSTEM, len(request.system.blocks) - 1)] if request.system.blocks else []
    return {breakpoint.block_key for breakpoint in (*made, *system)}


@FEW
@given(requests=conversations())
def test_a_host_is_told_once_what_is_meant_and_no_breakpoint_is_invented(requests: list[Body]) -> None:
    for host, model in MODELS:
        rules = RULES.rules(host, model, DAY)
        for sent in requests:
            request = Intake().body({**sent, "model": model})
            translated = translate(request, rules)
            again = translate(translated.request, rules)
            assert places(again.request) == places(translated.request), host
            assert {breakpoint.ttl for breakpoint in again.request.breakpoints} == {
                breakpoint.ttl for breakpoint in translated.request.breakpoints
            }, host
            asked = places(request) | (ends(request) if rules.implicit_breakpoint or request.automatic else set())
            assert places(translated.request) <= asked, host
            assert translated.request.thread is request.thread
            assert (translated.request.tools, translated.request.system) == (request.tools, request.system)


@FEW
@given(requests=conversations())
def test_hosts_with_breakpoints_as_claudes_get_the_request_itself(requests: list[Body]) -> None:
    for host, model in LIKE_CLAUDE:
        rules = RULES.rules(host, model, DAY)
        for sent in requests:
            request = Intake().body({**sent, "model": model})
            translated = translate(request, rules)
            able = [breakpoint for breakpoint in request.breakpoints if breakpoint.layer in rules.breakpoint_layers]
            assert translated.looks_at is None
            if len(able) == len(request.breakpoints) <= rules.maximum_breakpoints - (request.automatic is not None):
                assert translated.request is request and not translated.notes
            elif rules.surplus_breakpoints == "oldest_dropped":
                assert set(translated.request.breakpoints) <= set(able) and translated.notes
