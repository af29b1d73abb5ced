"""`cachecost serve`: simulated APIs of Anthropic, OpenAI and Gemini that bill your calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from cachecost.base.errors import exit_code
from cachecost.base.extras import require
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.base.times import midnight
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import SharedOptions, counter_option, option, port_option, shared_options
from cachecost.commands.output_paths import CheckedCommand, OutputPath
from cachecost.live.clock import CLOCKS, clock_from
from cachecost.live.request_log import CallLog
from cachecost.live.server.state import FORM, ServerState, faults_from
from cachecost.providers.hosts import host_of
from cachecost.providers.rules import data_date
from cachecost.tokens.tokenizers import require_ctok

if TYPE_CHECKING:
    from socket import socket

    from cachecost.simulation.setup import ReplaySetup

PORT = 8787
WHO_ANSWERS = (
    "Source of the answers: agent[:N] (N tool calls per turn), agent:N:TOOL,TOOL (may also call these tools, even if "
    "they change something), script:FILE, recording:FILE."
)
Parsed = TypeVar("Parsed")


@click.command(cls=CheckedCommand)
@port_option(PORT)
@option("--record", "Record each call in this request log.", OutputPath(dir_okay=False))
@option("--answers", WHO_ANSWERS, default="agent")
@option("--clock", f"Clock of the simulation: {CLOCKS}.", default="real")
@counter_option
@option("--first-token", "Seconds until the first token of an answer.", click.FloatRange(0), 0.0)
@option("--fault faults", f"Make calls fail: {FORM}; repeatable.", multiple=True, metavar="FAULT")
@option("--seed", "Seed of random failures and of ids.", int, 0)
@option("--no-bill", "Do not print the bill at the end.", is_flag=True)
@shared_options
def serve(
    port: int,
    record: Path | None,
    answers: str,
    clock: str,
    tokens: str,
    first_token: float,
    faults: tuple[str, ...],
    seed: int,
    no_bill: bool,
    shared: SharedOptions,
) -> int:
    """Serve simulated APIs on this machine, to see what the caching of a client costs.

    Point a client at it with ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL: it answers Anthropic's
    Messages, OpenAI's Chat Completions and Responses, and Gemini's generateContent, each billed by the cache of its
    host. Answers are free and need no network. The calls and the bill so far are on the page /cachecost; Ctrl-C stops
    the server and prints the bill.
    """
    require("cachecost serve", "starlette", "uvicorn")
    if tokens == "ctok":
        require_ctok()
    from cachecost.commands.view import listen_at
    from cachecost.live.server.answers import answerer_from, notes_of
    from cachecost.live.server.model import models_of
    from cachecost.live.server.state import Meter

    # A stepping clock begins with a day, not now, so that every run is the same.
    begin = midnight(shared.as_of or data_date(shared.host)) if clock.startswith("+") else None
    answerer = _parse("--answers", lambda: answerer_from(answers))
    timing = _parse("--clock", lambda: clock_from(clock, begin))
    schedule = _parse("--fault", lambda: faults_from(faults, seed))
    setup = replace(shared.setup, tokens=tokens)
    clock_words = "real time" if clock == "real" else f"{clock}, beginning now"
    if begin is not None:
        clock_words = f"{clock} a call, beginning {datetime.fromtimestamp(begin, UTC):%Y-%m-%d %H:%M} UTC"
    meter, models = Meter(setup), models_of(setup.rules, host_of(None, setup.host, ""))
    meter.notes = lambda: notes_of(answerer)
    with listen_at(port) as taken, CallLog(record) if record else nullcontext() as log:
        if log is not None and log.cut:
            print_diagnostic(f"{log.path}: {log.cut:,} bytes of an incomplete call removed")
        rest = (schedule, models, first_token, seed, print_diagnostic)
        lost = _serve(ServerState(answerer, meter, timing, log, *rest), taken, setup, clock_words)
    if not no_bill:
        from cachecost.live.server.bill import print_bill

        print_bill(meter, sys.stdout)
    return exit_code(check_failed=lost)


def _parse(option: str, make: Callable[[], Parsed]) -> Parsed:
    try:
        return make()
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None


def _serve(served: ServerState, taken: socket, setup: ReplaySetup, clock_words: str) -> int:
    """Serve until stopped; how many calls are missing in the log."""
    from cachecost.commands.view import new_token
    from cachecost.live.loopback import address_of
    from cachecost.live.server.app import app_of, serve_until_stopped
    from cachecost.live.server.bill import BELOW, BILL_FROM_PAGE, NAME, MeterFeed, PageBesideApi, routes
    from cachecost.live.server.served_api import PLACEHOLDER
    from cachecost.live.viewer.app import read_static_files, viewer_app
    from cachecost.live.viewer.sessions_source import LiveSource
    from cachecost.live.viewer.source import CallSignal

    meter, log, signal = served.meters, served.log, CallSignal()
    meter.heard = signal.tell
    token, port, address = new_token(), taken.getsockname()[1], address_of(taken)
    plain = replace(setup, counters={})
    source = LiveSource(MeterFeed(meter), signal, plain, NAME, has_bill=False, bill_path=BILL_FROM_PAGE)
    page = viewer_app(source, read_static_files(), token, port, print_diagnostic, BELOW)
    app = PageBesideApi(app_of(served, routes(meter, token, port)), page)

    def greet() -> None:
        print_diagnostic(f"Serving simulated APIs at {address}, on this machine only. Point a client at it:")
        print_diagnostic(f"ANTHROPIC_BASE_URL={address}\nANTHROPIC_API_KEY={PLACEHOLDER}")
        print_diagnostic(f"OPENAI_BASE_URL={address}/v1\nOPENAI_API_KEY={PLACEHOLDER}")
        print_diagnostic(f"GOOGLE_GEMINI_BASE_URL={address}\nGEMINI_API_KEY={PLACEHOLDER}")
        print_diagnostic(f"Clock: {clock_words}. The calls and the bill so far: {address}{BELOW}{token}/")
        if log is not None:
            print_diagnostic(f"Recording to {log.path}")
        print_diagnostic("Ctrl-C stops the server and prints the bill.")

    serve_until_stopped(app, taken, served.pauses, greet, signal.stop)
    if log is None:
        return 0
    lines = log.count_recorded()
    lost = max(0, served.calls - served.unreadable - lines)
    missing = f"; {lost:,} not recorded" if lost else ""
    print_diagnostic(f"{count_text(lines, 'call')} recorded in {log.path}{missing}")
    if served.unreadable:
        refused = count_text(served.unreadable, "refused call")
        print_diagnostic(f"{refused} not recorded: the body is not a valid request")
    return lost
