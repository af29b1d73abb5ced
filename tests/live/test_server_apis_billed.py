"""What OpenAI's and Gemini's served calls cost: what a replay of their record says, on each side of each edge."""

import random
import tempfile
from decimal import Decimal
from pathlib import Path

import httpx2
import pytest
from api_dialects import CHAT, GEMINI_API, MESSAGES, OTHERS, RESPONSES, Said
from hypothesis import given, settings
from hypothesis import strategies as st
from server_fakes import Says, lines_of, served_by
from test_server_billed import START, WORDS, meter
from viewer_client import Client

import cachecost
from cachecost.live.clock import SteppingClock
from cachecost.live.request_log import CallLog
from cachecost.live.server.answers.agent import AgentAnswerer
from cachecost.live.server.answers.recording import RecordingAnswerer
from cachecost.live.server.bill import NAME, MeterFeed, bill_of, bill_text
from cachecost.live.server.state import faults_from
from cachecost.live.viewer.sessions_source import LiveSource
from cachecost.live.viewer.source import CallSignal
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup

ALL = (CHAT, RESPONSES, GEMINI_API, MESSAGES)
STEP = st.tuples(
    st.integers(0, 5),  # which conversation
    st.sampled_from(["go on", "again", "ask", "begin"]),
    st.booleans(),  # streamed
    st.integers(0, 400),  # words
)


def converse(served, steps, seed):
    """Conversations of all APIs at once, each as the steps say."""
    dice = random.Random(seed)
    open_: dict[int, tuple] = {}
    for which, what, streams, count in steps:
        api = ALL[which % len(ALL)]
        text = " ".join(dice.choice(WORDS.split()) for _ in range(count)) or "x"
        if what == "begin" or which not in open_:
            open_[which] = (Said(text * 4, [api.question(text)]), [])
        said, answers = open_[which]
        if what == "go on" and answers:
            api.go_on(said, answers.pop(), text)
        elif what == "ask" and answers:
            api.go_on(said, answers.pop(), text)
            said.turns.append(api.question(text))
        try:
            response = api.send(served, said, streams)
        except httpx2.RemoteProtocolError:
            continue
        if response.status_code == 200 and not streams:
            answers[:] = [response.json()]


@settings(max_examples=12, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=14), st.sampled_from([(), ("2:529", "4:cut", "cut:0.2", "500:0.1")]))
def test_a_replay_of_the_record_says_what_was_billed(steps, faults):
    with tempfile.TemporaryDirectory() as folder:
        path, bill = Path(folder) / "log.jsonl", meter()
        with CallLog(path) as log:
            clock = SteppingClock(40.0, START)
            served = served_by(AgentAnswerer(2), bill, clock=clock, log=log, faults=faults_from(faults, 7))
            converse(served, steps, 3)
        told = [line.get("usage") for line in lines_of(path)]
        for tokens in ("tiktoken", None):
            rows = cachecost.replay(cachecost.read(path), tokens=tokens).rows
            answered = [row for row in rows if row.cause != "unknown" or row.usage.total_input]
            assert [row.usage.wire() for row in answered] == [usage for usage in told if usage]
            assert sum(row.cost.total for row in rows) == bill_of(bill).total.cost.total


@pytest.mark.parametrize("api", OTHERS, ids=lambda api: api.name)
def test_a_recording_answers_the_same_calls_with_the_same_words(api, tmp_path):
    def session(answerer, path):
        with CallLog(path) as log:
            served = served_by(answerer, meter(), clock=SteppingClock(2.0, START), log=log)
            said = Said("Be brief. " * 400, [api.question("What is in README.md?")])
            for _ in range(3):
                api.go_on(said, api.send(served, said).json(), "A line.")
        return path.read_bytes()

    first = session(AgentAnswerer(2), tmp_path / "first.jsonl")
    answerer = RecordingAnswerer.load(tmp_path / "first.jsonl")
    assert session(answerer, tmp_path / "second.jsonl") == first
    assert answerer.missed == 0


# --------------------------------------------------------------------------------------- OpenAI's grid


def prompt_of(api, tokens):
    """A system prompt that makes a call of exactly so many input tokens."""

    def total(words):
        served = served_by(Says(), meter(), clock=SteppingClock(2.0, START))
        api.send(served, Said(words, [api.question("Hi")]))
        return served.meters.rows[0].usage.total_input

    missing = tokens - total("x")
    while total(made := "x" + " a" * missing) != tokens:
        missing += tokens - total(made)
    return made


def tokens_after_the_prompt():
    """Those after the last block, which no cache can hold: what the same tokenizer's models with breakpoints leave."""
    served = served_by(Says(), meter(), clock=SteppingClock(2.0, START))
    RESPONSES.send(served, Said("hi " * 3000, [RESPONSES.question("Hi")]))
    return served.meters.rows[0].usage.input_tokens


RULES = RuleBook().rules("openai", CHAT.model)
LEAST, STEP_TOKENS = RULES.minimum_tokens, RULES.step_tokens
FIRST = LEAST + STEP_TOKENS - RULES.grid_offset_tokens
"""Where the first block ends that reaches the minimum: blocks begin before the prompt, in OpenAI's own text."""
EDGES = [
    (FIRST - 1, 0),
    (FIRST, LEAST),
    (FIRST + STEP_TOKENS - 1, LEAST),
    (FIRST + STEP_TOKENS, LEAST + STEP_TOKENS),
    (FIRST + 3 * STEP_TOKENS + 1, LEAST + 3 * STEP_TOKENS),
]


def test_the_rules_are_those_of_the_guide():
    assert (LEAST, STEP_TOKENS) == (1024, 128)
    assert 0 < RULES.grid_offset_tokens < STEP_TOKENS


@pytest.mark.parametrize(("tokens", "read"), EDGES)
def test_openai_reads_whole_steps_from_the_minimum_on(tokens, read):
    served = served_by(Says(), meter(), clock=SteppingClock(2.0, START))
    tokens += tokens_after_the_prompt()
    said = Said(prompt_of(CHAT, tokens), [CHAT.question("Hi")])
    first, second = (CHAT.send(served, said).json()["usage"] for _ in range(2))
    assert first["prompt_tokens"] == second["prompt_tokens"] == tokens
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    assert second["prompt_tokens_details"]["cached_tokens"] == read
    assert first["prompt_tokens_details"]["cache_write_tokens"] == 0


def test_an_entry_expires():
    said = Said("Be brief. " * 900, [CHAT.question("Hi")])

    def second_read(seconds):
        served = served_by(Says(), meter(), clock=SteppingClock(seconds, START))
        CHAT.send(served, said)
        CHAT.send(served, said)
        return served.meters.rows[1].usage.read

    assert second_read(RULES.ttl_s["5m"] - 1) > 0
    assert second_read(RULES.ttl_s["5m"] + 1) == 0


@pytest.mark.parametrize(
    ("options", "writes"),
    [({}, True), ({"mode": "implicit"}, True), ({"mode": "explicit"}, False)],
)
def test_in_explicit_mode_nothing_is_cached_without_a_breakpoint(options, writes):
    """The answer names the model as the request did."""
    served = served_by(Says(), meter(), clock=SteppingClock(2.0, START))
    said = Said("hi " * 3000, [RESPONSES.question("Hi")])
    answers = [RESPONSES.send(served, said, prompt_cache_options=options).json() for _ in range(2)]
    assert {answer["model"] for answer in answers} == {RESPONSES.model}
    first, second = (answer["usage"]["input_tokens_details"] for answer in answers)
    assert (first["cache_write_tokens"] > 0, second["cached_tokens"] > 0) == (writes, writes)


@pytest.mark.parametrize("api", [CHAT, RESPONSES], ids=lambda api: api.name)
def test_an_answer_that_comes_back_is_read_as_in_a_replay(api, tmp_path):
    """Prompts whose lengths go through a whole step: in some, the answer is what reaches the next one."""
    path, bill = tmp_path / "log.jsonl", meter()
    with CallLog(path) as log:
        served = served_by(AgentAnswerer(3), bill, clock=SteppingClock(2.0, START), log=log)
        for more in range(0, STEP_TOKENS, 12):
            loop(served, api, "a " * (1_500 + more), 3)
    rows = cachecost.replay(cachecost.read(path), tokens="tiktoken").rows
    assert [row.usage for row in rows] == [row.usage for row in served.meters.rows]


# --------------------------------------------------------------------------------------------- the bill


def setup_of():
    return ReplaySetup(RuleBook(), PriceBook.load(), "anthropic", "tiktoken")


def loop(served, api, system, calls):
    said = Said(system, [api.question(f"Look around with {api.name}")])
    for _ in range(calls):
        api.go_on(said, api.send(served, said).json(), "A line. " * 20)


def test_the_bill_of_all_apis_together():
    served = served_by(AgentAnswerer(3), meter(), clock=SteppingClock(2.0, START))
    for api in ALL:
        loop(served, api, f"{api.name} " * 3000, 4)
    bill = bill_of(served.meters)
    assert [share.name for share in bill.models] == [api.model for api in ALL]
    assert sum((share.cost.total for share in bill.models), Decimal(0)) == bill.total.cost.total
    assert all(share.cost.total < share.uncached for share in bill.models)
    assert bill.loops == ()
    source = LiveSource(MeterFeed(served.meters), CallSignal(), setup_of(), NAME, has_bill=False, bill_path="x")
    shown = Client(source).get("api/sessions").json
    assert Decimal(shown["total"]["cost_usd"]) == bill.total.cost.total
    assert sorted(row["models"] for row in shown["sessions"]) == sorted([api.model] for api in ALL)
    for row in shown["sessions"]:
        told = Client(source).get(f"api/session/{row['id']}/call/2")
        assert told.status == 200, told.body


@pytest.mark.parametrize(
    ("api", "system", "why"),
    [
        (CHAT, "Hi", "its prompts are below the minimum of 1,024 tokens that this model caches"),
        (GEMINI_API, "Hi", "its prompts are below the minimum of 2,048 tokens that this model caches"),
        (MESSAGES, "Hi", "its prompts are below the minimum of 1,024 tokens that this model caches"),
        (CHAT, "hi " * 3000, None),
        (GEMINI_API, "hi " * 3000, None),
    ],
)
def test_the_reason_of_an_uncached_loop_fits_its_host(api, system, why):
    served = served_by(AgentAnswerer(3), meter(), clock=SteppingClock(2.0, START))
    loop(served, api, system, 4)
    api.send(served, Said("", [api.question("Hi")]), model="nobody-1")
    assert [one.why for one in bill_of(served.meters).loops] == ([why] if why else [])
    assert "no breakpoint" not in bill_text(bill_of(served.meters), 100)


def test_a_loop_that_expires_each_time_says_so():
    served = served_by(AgentAnswerer(3), meter(), clock=SteppingClock(RULES.ttl_s["5m"] + 1, START))
    loop(served, CHAT, "hi " * 3000, 4)
    (one,) = bill_of(served.meters).loops
    assert one.why == "the cache was not read: ttl expired"
