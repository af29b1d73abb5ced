"""The calls that a scenario's strategies will send, with content and priced. Nothing is sent here.

Blocks without content get filler of about the same token count after planning, so it covers what a strategy adds to a
conversation (summaries, reminders, questions), and before pricing, so what is priced is what is sent. Equal blocks get
equal content, so common prefixes remain; a few words in the first block keep strategies and runs from sharing cache
entries. The API's rules for the order of blocks are checked before anything is sent (documentation, Messages).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.conversations.calls import Call, date_call
from cachecost.ledger.rows import NOT_EVALUATED, CallRow
from cachecost.live.driver.budget import CallPricing, from_count, unbounded_reason
from cachecost.prompts.blocks import NOTHING, THINKING, Block, Layer, Message, Part, Thread
from cachecost.prompts.intake import Intake
from cachecost.prompts.output_format import counts_unseen, output_format
from cachecost.prompts.passes import body_of
from cachecost.prompts.render import CannotCount, TokenCounter
from cachecost.prompts.request import Request, block_of, content_blocks, text_block
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import ZERO
from cachecost.scenario import Scenario, load_conversations
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import plan_calls
from cachecost.strategies.spec import StrategySpec

LIST = (
    "air all arm art bag bar bed big bit boat body bone book box bread bus cake call camp card care case cat chair "
    "city clay clock cloud coal coat cold cook corn cow cup dark day deep desk dish dog door dream dry dust ear "
    "earth edge egg end eye face farm fast field fire fish floor flower food foot forest fork game garden gate girl "
    "glass gold grass green hair half hall hand hat head heart hill home horse house ice iron island key king "
    "kitchen lake lamp land leaf leg letter light line lion list long market milk mind moon morning mountain "
    "mouth music name neck nest new night nine nose ocean old orange page paint paper park party path pen pig pin "
    "pipe place"
)
WORDS = tuple(LIST.split())
"""128 of them, so a word encodes seven bits."""
DIGEST_WORDS = 5
"""The first words encode 35 bits of the digest, so no text is shorter."""


def text(digest: bytes, words: int) -> str:
    """`words` words (at least DIGEST_WORDS), drawn from `digest`."""
    bits = int.from_bytes(digest)
    first = [WORDS[bits >> (7 * number) & 127] for number in range(DIGEST_WORDS)]
    return " ".join(first + Random(bits).choices(WORDS, k=max(0, words - DIGEST_WORDS)))


Content = dict[str, Any]
SAMPLE = 100
"""Words in the sample that measures tokens per word."""
BYTES_PER_TOKEN = 4
SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
Filled = tuple[Thread, tuple[str, ...], dict[int, int]]
"""A thread with content, the calls open at its end, and where the blocks of its last message went."""

NO_THINKING = "Thinking blocks without a signature cannot be sent and are omitted."
AS_TEXT = "Blocks of kind {kind} without content are sent as text of about the same length."
UNMATCHED = "Tool results without a preceding tool call are sent as text."
FILLER = "Blocks without content are sent as filler text of about the same token count."


class FillerContent:
    """Adds content to the requests of one strategy. `counter` measures blocks; `notes` are sentences for the user."""

    def __init__(self, counter: TokenCounter) -> None:
        self.notes: dict[str, None] = {}
        self._counter = counter
        self._root = Thread()
        self._threads: dict[Thread, Filled] = {}
        self._parts: dict[Part, Part] = {NOTHING: NOTHING}
        self._blocks: dict[tuple[bytes, str], Block] = {}
        self._rates: dict[str, float] = {}
        """Tokens per word in a block of a kind."""

    def fill_request(self, request: Request) -> Request:
        thread = self._thread(request.thread)[0]
        breakpoints = []
        for breakpoint in request.breakpoints:
            if breakpoint.layer is not Layer.MESSAGES or breakpoint.node is None:
                breakpoints.append(breakpoint)
                continue
            node, _, places = self._thread(breakpoint.node)
            if breakpoint.index in places:
                breakpoints.append(replace(breakpoint, node=node, index=places[breakpoint.index]))
        tools, system = self._part(request.tools), self._part(request.system)
        return replace(request, thread=thread, tools=tools, system=system, breakpoints=tuple(breakpoints))

    def _part(self, part: Part) -> Part:
        if part not in self._parts:
            self._parts[part] = Part(tuple(self._block(block, "") for block in part.blocks), part.places)
        return self._parts[part]

    def _thread(self, thread: Thread) -> Filled:
        return thread.fold(self._threads, (self._root, (), {}), self._add_message)

    def _add_message(self, before: Filled, message: Message) -> Filled:
        """The filled thread with the message added, unless it is empty."""
        blocks: list[Block] = []
        places: dict[int, int] = {}
        opened = list(before[1])
        for number, block in enumerate(message.blocks):
            if block.is_thinking and block.content is None:
                self.notes[NO_THINKING] = None
                continue
            places[number] = len(blocks)
            blocks.append(self._result(block, opened) if block.kind == "tool_result" else self._block(block, ""))
        if not blocks:
            return before[0], before[1], {}
        called = [block for block in blocks if block.kind == "tool_use" and message.role == "assistant"]
        calls = tuple(str((block.content or {}).get("id")) for block in called)
        return before[0].then(Message.of(message.role, tuple(blocks))), calls, places

    def _result(self, block: Block, opened: list[str]) -> Block:
        """A result for the call of `opened` that it names, else the first; as text if none is open."""
        content = block.content
        named = str((content or {}).get("tool_use_id"))
        answers = named if named in opened else next(iter(opened), "")
        if answers:
            opened.remove(answers)
        else:
            self.notes[UNMATCHED] = None
        if content is None:
            return self._block(block, answers)
        if answers:
            return block if named == answers else block_of("user", {**content, "tool_use_id": answers})
        inner = content.get("content")
        return text_block("user", inner if isinstance(inner, str) and inner else json.dumps(inner))

    def _block(self, block: Block, answers: str) -> Block:
        """A block with content; `answers` is the call that a result is for."""
        if block.content is not None:
            return block_of(block.role, block.content) if block.tokens is not None else block
        key = (block.digest, answers)
        if key not in self._blocks:
            self.notes[FILLER] = None
            kind, make = maker(block, answers)
            if kind == "text" and block.kind not in ("text", "tool_result"):
                self.notes[AS_TEXT.format(kind=block.kind)] = None

            def filled(words: int) -> Block:
                return block_of(block.role, make(text(block.digest, DIGEST_WORDS + words)))

            if kind not in self._rates:
                short, long = (self._counter.block(filled(words)) for words in (SAMPLE, 2 * SAMPLE))
                self._rates[kind] = max(0.01, (long - short) / SAMPLE)
            try:
                tokens = self._counter.block(block)
            except CannotCount:
                tokens = block.size // BYTES_PER_TOKEN
            rest = tokens - self._counter.block(filled(0))
            self._blocks[key] = filled(max(0, round(rest / self._rates[kind])))
        return self._blocks[key]


def maker(block: Block, answers: str) -> tuple[str, Callable[[str], Content]]:
    """(kind, what makes the wire object of a filler text) for a block."""
    name = "_".join([*text(block.digest, DIGEST_WORDS).split()[:2], block.digest.hex()[:6]])
    if block.kind == "tool":
        return "tool", lambda words: {"name": name, "description": words, "input_schema": SCHEMA}
    if block.kind == "tool_use" and block.role == "assistant":
        head = {"type": "tool_use", "id": f"toolu_{block.digest.hex()[:24]}", "name": name}
        return "tool_use", lambda words: {**head, "input": {"what": words}}
    if block.kind == "tool_result" and answers:
        return "tool_result", lambda words: {"type": "tool_result", "tool_use_id": answers, "content": words}
    return "text", lambda words: {"type": "text", "text": words}


def nonce_of(run: str, strategy: str) -> str:
    """The same length for every strategy and every run."""
    return "run " + blake2b(f"{run}\0{strategy}".encode(), digest_size=8, person=b"nonce").hexdigest()


def with_nonce(body: Mapping[str, Any], nonce: str) -> Content:
    """`body` with the nonce in its first block: a tool's description, else the system prompt, else the first message.

    Not in a tool that Anthropic defines, nor in a deferred one.
    """
    tools = list(body.get("tools") or ())
    for number, tool in enumerate(tools):
        if "input_schema" in tool and not tool.get("defer_loading"):
            named = {**tool, "description": f"{nonce} {tool.get('description') or ''}".rstrip()}
            return {**body, "tools": [*tools[:number], named, *tools[number + 1 :]]}
    if body.get("system"):
        return {**body, "system": _before(content_blocks(body["system"], "system"), nonce)}
    first, *rest = body["messages"]
    content = _before(content_blocks(first["content"], "messages.0.content"), nonce)
    return {**body, "messages": [{**first, "content": content}, *rest]}


def _before(blocks: list[Mapping[str, Any]], nonce: str) -> list[Mapping[str, Any]]:
    first, *rest = blocks
    if first.get("type") == "text":
        return [{**first, "text": f"{nonce} {first['text']}"}, *rest]
    return [{"type": "text", "text": nonce}, *blocks]


Blocks = list[Mapping[str, Any]]
Turn = tuple[str, Blocks]


def faults_in(body: Mapping[str, Any]) -> list[str]:
    """Why the API would answer 400; empty if no reason is known."""
    faults: list[str] = []
    wanted = output_format(body)
    if isinstance(wanted, Mapping) and counts_unseen(wanted) is not None:
        faults.append("output_config.format: the recording holds no schema, only its size, so it cannot be sent")
    names = [str(tool.get("name")) for tool in body.get("tools") or ()]
    for name, times in Counter(names).items():
        if times > 1:
            faults.append(f"tools: names must be unique; '{name}' appears {times} times")
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name):
            faults.append(f"tools: '{name}' is not a valid tool name")
    choice = body.get("tool_choice") or {}
    if choice.get("type") == "tool" and choice.get("name") not in names:
        faults.append(f"tool_choice: tool '{choice.get('name')}' is not among the tools")
    return [*faults, *_message_faults(body)]


def _message_faults(body: Mapping[str, Any]) -> Iterator[str]:
    turns: list[Turn] = []
    for number, message in enumerate(body.get("messages") or ()):
        blocks = content_blocks(message["content"], f"messages.{number}.content")
        if not blocks:
            yield f"messages.{number}: content must not be empty"
        for index, block in enumerate(blocks):
            if block.get("type") == "text" and not str(block.get("text") or "").strip():
                yield f"messages.{number}.content.{index}: text must not be empty"
        if turns and turns[-1][0] == message["role"]:  # as the API merges them, without system messages
            turns[-1][1].extend(blocks)
        elif message["role"] != "system":
            turns.append((message["role"], list(blocks)))
    if not turns or turns[0][0] != "user":
        first = "messages.0: the first message must be the user's"
        yield first if turns else "messages: at least one message is required"
    yield from _result_faults(turns)
    if (body.get("thinking") or {}).get("type") != "enabled" or len(turns) < 2:
        return
    continues = turns[-1][0] == "user" and any(block.get("type") == "tool_result" for block in turns[-1][1])
    if continues and turns[-2][1][0].get("type") not in THINKING:
        yield (
            "with manual thinking, the tool results at the end need the thinking that came before their calls, and "
            "it cannot be sent without its signature: run with --set conversation.params.thinking.type=adaptive or "
            "=disabled"
        )


def _result_faults(turns: list[Turn]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for number, (role, blocks) in enumerate(turns, 1):
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        if missing := [one for one in waiting if one not in results]:
            yield f"turn {number}: no tool_result for tool_use {', '.join(missing)} right after it"
        if strange := [one for one in results if one not in waiting]:
            yield f"turn {number}: a tool_result without a tool_use right before it: {', '.join(strange)}"
        if twice := sorted({one for one in calls if one in seen or calls.count(one) > 1}):
            yield f"turn {number}: tool_use ids must be unique: {', '.join(twice)}"
        kinds = [block.get("type") == "tool_result" for block in blocks]
        if role == "user" and kinds != sorted(kinds, reverse=True):
            yield f"turn {number}: tool results must come before anything else"
        seen.update(calls)
        waiting = calls
    if waiting:
        yield f"turn {len(turns)}: the last message calls tools, and has no results for them"


HOST = "anthropic"
CALIBRATED, DEFAULT_TOKENS = "calibrated", "tiktoken"
BATCH = "Batch calls are sent one by one, at the price of ordinary calls."


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """Options of a run. `pace` scales pauses; `output` is the most output tokens of a call."""

    output: int = 16
    pace: float = 1.0
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveCall:
    """One call to be sent: `offset` is seconds after the first call of its strategy, pauses scaled.

    `row` is the prediction at these offsets, `worst` its upper bound in USD by the plan's token counts;
    `refused` is why the API would refuse it (None: it is sent).
    """

    label: str
    offset: float
    request: Request
    body: Mapping[str, Any]
    row: CallRow
    worst: Decimal
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedStrategy:
    """A strategy's calls in the order they start, with notes for the user."""

    name: str
    steps: tuple[LiveCall, ...]
    notes: tuple[str, ...]
    rules: Mapping[str, Any]

    @property
    def groups(self) -> Iterator[list[LiveCall]]:
        """Calls that start at once."""
        for _, steps in groupby(self.steps, key=lambda step: step.offset):
            yield list(steps)

    @property
    def predicted_usd(self) -> Decimal:
        return sum((step.row.cost.total for step in self.steps), ZERO)

    @property
    def worst_usd(self) -> Decimal:
        return sum((step.worst for step in self.steps if not step.refused), ZERO)

    @property
    def seconds(self) -> float:
        return self.steps[-1].offset if self.steps else 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """All strategies of a scenario, ready to be sent under the run's id; planned `at` seconds since the epoch."""

    scenario: Scenario
    run: str
    at: float
    terms: ReplaySetup
    strategies: tuple[PlannedStrategy, ...]

    @property
    def digest(self) -> str:
        """A digest of everything to be sent; it changes with the scenario, the options and the planner."""
        digest = blake2b(digest_size=16, person=b"live plan")
        for step in self.steps:
            digest.update(json.dumps([step.label, step.body]).encode())
        return digest.hexdigest()

    @property
    def steps(self) -> list[LiveCall]:
        return [step for planned in self.strategies for step in planned.steps]

    @property
    def faults(self) -> list[str]:
        """Why the API would refuse a call, or its cost has no upper bound; one for each strategy."""
        found = []
        for planned in self.strategies:
            sent = [step for step in planned.steps if not step.refused]
            whys = ((step, why) for step in sent for why in (*faults_in(step.body), unbounded_reason(step.body)) if why)
            found += [f"{step.label}: {why}" for step, why in [*whys][:1]]
        return found


def plan(
    scenario: Scenario, folder: Path, run: str, now: float, options: LiveOptions, prices: Path | None = None
) -> Plan:
    """What `cachecost live` would send from `now` on. Raises CannotEvaluate, InputError."""
    if scenario.host != HOST:
        raise CannotEvaluate(f"live supports only Anthropic's API; the scenario's host is {scenario.host}")
    own = prices or (folder / scenario.prices if scenario.prices else None)
    counter = DEFAULT_TOKENS if scenario.tokens in (None, CALIBRATED) else str(scenario.tokens)
    rules = RuleBook(assumptions_from(scenario.rules), day_of(now))
    terms = ReplaySetup(rules, PriceBook.load(own), HOST, counter, scenario.model)
    conversations = load_conversations(scenario, folder).conversations
    planner = _Planner(terms, run, now, options)
    specs = [spec for spec in scenario.strategies if not options.only or spec.name in options.only]
    planned = tuple(planner.plan_strategy(spec, conversations) for spec in specs)
    return Plan(scenario, run, now, terms, planned)


@dataclass(frozen=True, slots=True)
class _Planner:
    terms: ReplaySetup
    run: str
    now: float
    options: LiveOptions

    def plan_strategy(self, spec: StrategySpec | str, conversations: list[Any]) -> PlannedStrategy:
        """The calls of one strategy. They share a message tree and a nonce."""
        terms = self.terms
        strategy = terms.build_strategy(spec)
        generation = terms.rules.rules(HOST, terms.model or "").generation
        material, intake = FillerContent(terms.counter(generation)), Intake(keep_content=True)
        simulation = Simulation(terms.for_strategy(strategy), strategy.name)
        calls = list(plan_calls(strategy, conversations))
        nonce = nonce_of(self.run, strategy.name)
        steps = []
        for number, call in enumerate(calls, 1):
            request, thinking = call.request, call.request.params.get("thinking") or {}
            if request.params.get("max_tokens") != 0:  # a call that only warms the cache keeps 0
                budget = int(thinking.get("budget_tokens") or 0) if thinking.get("type") == "enabled" else 0
                request = replace(request, params={**request.params, "max_tokens": budget + self.options.output})
            body = with_nonce(body_of(material.fill_request(request)), nonce)
            request = intake.body(body)
            label, offset = f"{strategy.name}/{number}", (call.start - calls[0].start) * self.options.pace
            start, body = self.now + offset, body_of(request)
            asked = {name: getattr(call, name) for name in ("purpose", "turn", "inquiry")}
            planned = Call(request, start, output_tokens=int(body["max_tokens"]), is_simulated=True, **asked)
            row, worst = simulation.row(date_call(planned)), ZERO
            if row.error_type == NOT_EVALUATED:
                raise CannotEvaluate(f"{label}: {row.error}")
            if not row.error:
                tokens = from_count(row.usage.total_input)
                worst = CallPricing(terms.prices, HOST).worst(body, tokens, day_of(start))
            steps.append(LiveCall(label, offset, request, body, row, worst, row.error))
        found = [note for conversation in conversations for note in strategy.notes(conversation)]
        batch = [BATCH] if any(call.is_batch for call in calls) else []
        notes = tuple(dict.fromkeys([*found, *material.notes, *batch]))
        return PlannedStrategy(strategy.name, tuple(steps), notes, getattr(strategy, "rules", {}))
