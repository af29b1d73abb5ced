"""Who bills: the simulated cache of all workspaces, one call after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.base.times import day_of, seconds
from cachecost.ledger.results import ZERO, CallRow
from cachecost.ledger.unread import Unread
from cachecost.live.log import moment
from cachecost.live.server.conversations import Talks
from cachecost.live.server.diagnostics import Diagnostics
from cachecost.live.server.model import Answer, Asked, Metered, Refused
from cachecost.prompts.blocks import Thread
from cachecost.prompts.intake import Intake
from cachecost.prompts.refusals import marks_sent
from cachecost.prompts.render import Renderer
from cachecost.prompts.request import Request
from cachecost.prompts.wire import NotAMessage, answer_blocks
from cachecost.providers.usage import Usage
from cachecost.replay.setup import ReplaySetup
from cachecost.replay.simulation import REFUSED, Call, SimulatedCall, Simulation

INVALID = "invalid_request_error"
NOT_FOUND = "not_found_error"
NOTHING = "got nothing"
CUT = "max_tokens"


@dataclass(frozen=True, slots=True)
class Taken:
    """A call as the bill looks at it.

    `first` is the first message of its conversation; `before` the number of the call that it goes on from (None: none).
    `unmarked` is what it would have cost without any caching, `input_price` what a token of it costs unmarked, in USD
    per 10**6 tokens; `minimum` how many tokens a cached prefix of its model has at least.
    """

    row: CallRow
    request: Request
    workspace: str
    first: Thread
    before: int | None = None
    unmarked: Decimal = ZERO
    input_price: Decimal = ZERO
    minimum: int = 0


def no_notes() -> Sequence[str]:
    return ()


class Meter:
    """Bills calls under a setup. Calls come in the order they start.

    `taken` holds every call that reached the ledger, in order: the `number`-th has `row.call == number`. Bodies that
    are no Messages request are in no ledger; `not_messages` counts them. `notes` tells what else the bill should say.
    """

    def __init__(self, setup: ReplaySetup) -> None:
        self._setup = setup
        self._renderers: dict[str, Renderer] = {}
        self._intake = Intake(keep_content=True)
        self._simulation = Simulation(setup)
        self._diagnostics = Diagnostics()
        self._talks = Talks()
        self.unread = Unread()
        self.taken: list[Taken] = []
        self.not_messages = 0
        self.notes: Callable[[], Sequence[str]] = no_notes

    @property
    def rows(self) -> list[CallRow]:
        """The ledger, in the order calls started; refused ones, which cost nothing, with their error."""
        return [one.row for one in self.taken]

    @property
    def token_source(self) -> str:
        """How tokens were counted; empty before the first call."""
        return self._setup.token_source

    @property
    def band(self) -> float:
        """The relative error of the token counts."""
        return self._setup.band

    def take(self, asked: Asked, answer: Answer) -> Metered | Refused:
        """Bill a call that is about to be answered; see `Meters`."""
        try:
            request = self._intake.body(asked.body)
        except NotAMessage as fault:
            self.not_messages += 1
            return Refused(400, INVALID, in_the_apis_words(fault))
        simulated = self._simulation.simulate(_call(asked, request, answer))
        self._keep(asked, request, simulated)
        if simulated.row.error is not None:
            return self._refused(asked, request, simulated.row)
        told = self._diagnosed(asked, request)
        return Metered(simulated.row, simulated.row.usage, told)

    def count(self, body: Mapping[str, Any]) -> int:
        """Input tokens of a body, hidden ones included. Raises CannotEvaluate, NotAMessage."""
        request = self._intake.body(body)
        rules = self._setup.rules.rules(self._setup.host, request.model)
        if rules.generation not in self._renderers:
            self._renderers[rules.generation] = Renderer(self._setup.counter(rules.generation))
        marks = marks_sent(request).marks
        return self._renderers[rules.generation].render(request, marks, rules).total_tokens

    def _keep(self, asked: Asked, request: Request, simulated: SimulatedCall) -> None:
        row, passes, rules, prices = simulated
        first = self._talks.first(request.thread)
        before = self._talks.before(asked.workspace, request.thread)
        if prices is None or rules is None:
            self.taken.append(Taken(row, request, asked.workspace, first, before))
            return
        self._talks.remember(asked.workspace, request.thread, row.call)
        for one in passes:
            self.unread.add(row.call, one.outcome, prices, one.sizes)
        unmarked = prices.cost(Usage(row.usage.total_input, output_tokens=row.usage.output_tokens))
        dollars = sum(unmarked.values(), ZERO)
        kept = Taken(row, request, asked.workspace, first, before, dollars, prices.input, rules.minimum_tokens)
        self.taken.append(kept)

    def _diagnosed(self, asked: Asked, request: Request) -> Mapping[str, Any] | None:
        self._diagnostics.remember(asked.workspace, asked.id, request)
        return self._diagnostics.of(asked.workspace, asked.previous, request) if asked.wants_diagnostics else None

    def _refused(self, asked: Asked, request: Request, row: CallRow) -> Refused:
        """What the API answers: 400 where it refuses, 404 for a model that it does not have."""
        message = row.error or ""
        if row.error_type == REFUSED:
            return Refused(400, INVALID, message)
        try:
            self._setup.rules.rules(self._setup.host, request.model, day_of(asked.start))
        except CannotEvaluate:
            return Refused(404, NOT_FOUND, f"model: {request.model}")
        return Refused(400, INVALID, f"cachecost cannot bill this call: {message}")


def _call(asked: Asked, request: Request, answer: Answer) -> Call:
    """The call as `replay` will read it from the log: its time to the microsecond, its rules those of its day."""
    timestamp = moment(asked.start)
    start = seconds(timestamp)
    output = answer_blocks(answer.content, request.deferred)
    return Call(
        request,
        start,
        day_of(start),
        timestamp,
        workspace=asked.workspace,
        first_token_s=answer.first_token_s,
        output=output,
        response=output,
        output_tokens=_output_told(answer),
    )


def _output_told(answer: Answer) -> int | None:
    """The output tokens that a recording knows of its answer; None where nobody knows, or the answer was cut since."""
    was_cut = answer.stop_reason == CUT
    return None if was_cut else getattr(answer, "output_tokens", None)


def in_the_apis_words(fault: NotAMessage) -> str:
    """A fault of a body as the API says it: `messages.0.role: Input should be …`, `messages: Field required`."""
    path, _, told = str(fault).partition(": ")
    expected, _, got = told.partition("; ")
    if got.startswith(NOTHING):
        return f"{path}: Field required"
    return f"{path}: Input should be {expected.removeprefix('expected ')}"
