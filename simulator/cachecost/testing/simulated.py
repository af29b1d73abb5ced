"""The simulated API of a test: clients reach it by a transport, an SDK client or a base URL."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any, Self

from cachecost.base.extras import require
from cachecost.base.times import midnight
from cachecost.ledger.results import CallRow
from cachecost.live.log import CallLog
from cachecost.live.server.answers import answerer_from
from cachecost.live.server.arrival import PLACEHOLDER
from cachecost.live.server.catalogue import models_of
from cachecost.live.server.meter import Meter
from cachecost.live.server.model import Answerer
from cachecost.live.server.state import ServerState
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook, data_date
from cachecost.simulation.setup import ReplaySetup
from cachecost.testing.clock import MovableClock, movable
from cachecost.testing.transport import AsyncTransport, Transport
from cachecost.tokens.ctok_ import require_ctok

NOWHERE = "http://cache-cost.invalid"
"""Where clients of a transport think they send to; the name can never be a host (RFC 6761)."""


class SimulatedAPI:
    """Takes the calls of clients, in this process or through a server on loopback, bills and records them."""

    def __init__(
        self,
        folder: Path,
        *,
        as_of: date | str | None = None,
        host: str = AUTO_HOST,
        tokens: str = "tiktoken",
        rules: Mapping[str, object] | None = None,
        prices: str | Path | None = None,
        answers: str | Answerer = "agent",
        clock: str = "+2s",
    ) -> None:
        if tokens == "ctok":
            require_ctok()
        day = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of
        book = PriceBook.load(Path(prices) if prices else None, day)
        self._setup = ReplaySetup(RuleBook(assumptions_from(rules or {}), day), book, host, tokens)
        self._clock = movable(clock, midnight(day or data_date(host)))
        self._meter = Meter(self._setup)
        answerer = answerer_from(answers) if isinstance(answers, str) else answers
        self._open = ExitStack()
        self._log = CallLog(folder / "calls.jsonl")
        self._open.callback(self._log.close)
        self._faults: list[str] = []
        self._served = ServerState(
            answerer,
            self._meter,
            self._clock,
            self._log,
            models=models_of(self._setup.rules, host_of(None, host, "")),
            say=self._faults.append,
        )
        self._address: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server, if there is one, and close the recording."""
        self._open.close()

    @property
    def transport(self) -> Any:
        """For your own client: `httpx2.Client(transport=cache_cost.transport)`, and the same with httpx."""
        return Transport(self._served)

    @property
    def async_transport(self) -> Any:
        """For your own client: `httpx2.AsyncClient(transport=cache_cost.async_transport)`."""
        return AsyncTransport(self._served)

    def client(self, **options: Any) -> Any:
        """An `anthropic.Anthropic` whose calls end here; `options` are its own. Raises NotInstalled."""
        sdk = _sdk()
        http_client = sdk.DefaultHttpxClient(transport=self.transport)
        return self._open.enter_context(sdk.Anthropic(**{**_CLIENT, **options, "http_client": http_client}))

    def async_client(self, **options: Any) -> Any:
        """An `anthropic.AsyncAnthropic` whose calls end here; `options` are its own. Raises NotInstalled."""
        sdk = _sdk()
        http_client = sdk.DefaultAsyncHttpxClient(transport=self.async_transport)
        return sdk.AsyncAnthropic(**{**_CLIENT, **options, "http_client": http_client})

    @property
    def base_url(self) -> str:
        """The address of a server on this machine only, started on first use: for agents in other processes.

        Raises NotInstalled where starlette or uvicorn is missing.
        """
        if self._address is None:
            self._address = self._open.enter_context(_serving(self._served))
        return self._address

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a process whose calls go to `base_url`."""
        return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": PLACEHOLDER}

    def wait(self, seconds: float = 0.0, *, minutes: float = 0.0) -> None:
        """Let the next call come that much later, without waiting. Raises ValueError for a real clock."""
        if not isinstance(self._clock, MovableClock):
            raise ValueError("wait: expected a clock like '+2s'; a clock that runs by itself cannot be moved")
        self._clock.skip(seconds + 60 * minutes)

    @property
    def calls(self) -> list[CallRow]:
        """Each call with its usage, its dollars and its cause, in order; refused ones with their error."""
        if self._faults:
            raise AssertionError("\n".join(self._faults))
        return self._meter.rows

    @property
    def recording(self) -> Path:
        """The request log of the calls so far, as `cachecost replay` reads it."""
        return self._log.path


_CLIENT = {"api_key": PLACEHOLDER, "base_url": NOWHERE, "max_retries": 0}


def _sdk() -> Any:
    require("cache_cost.client()", "anthropic")
    import anthropic

    return anthropic


def _serving(served: ServerState) -> Any:
    require("cache_cost.base_url", "starlette", "uvicorn")
    from cachecost.live.server.app import app_of
    from cachecost.live.server.serving import serving

    return serving(app_of(served), served.pauses)
