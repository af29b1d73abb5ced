"""`cachecost record`: a proxy between a client and the API that records the calls."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from cachecost.base.errors import exit_code
from cachecost.base.extras import require
from cachecost.base.formatting import count_text
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import SharedOptions, content_option, option, port_option, reading_bar, shared_options
from cachecost.commands.output_paths import CheckedCommand, OutputPath

PORT = 8788


@click.command(cls=CheckedCommand)
@option("--upstream", "URL of the API; may include a path.", default="https://api.anthropic.com", metavar="URL")
@option(
    "-o --out",
    "Recording to write; an existing one is continued.  [default: recording-DATE.jsonl]",
    OutputPath(dir_okay=False),
)
@port_option(PORT)
@content_option
@option("--page", "Show the calls on a page of this port; 0: any free one.", click.IntRange(0, 65535), metavar="PORT")
@option("--insecure", "Allow http:// to another machine: keys and prompts are not encrypted.", is_flag=True)
@option("--quiet", "Do not print a line for each call.", is_flag=True)
@shared_options
def record(
    upstream: str,
    out: Path | None,
    port: int,
    content: str,
    page: int | None,
    insecure: bool,
    quiet: bool,
    shared: SharedOptions,
) -> int:
    """Record the calls between a client and the API, with their billed usage and times.

    Point the client at it (ANTHROPIC_BASE_URL=http://127.0.0.1:PORT). Calls are passed on unchanged and without delay,
    and no key is stored. With --page, a page on this machine shows the calls while they come. Ctrl-C stops it when the
    running calls have ended; a second Ctrl-C cuts them off.
    """
    require("cachecost record", "uvicorn", "httpx2", *(["starlette"] if page is not None else []))
    from cachecost.live.recorder.helper import HelperOptions
    from cachecost.live.recorder.proxy import record as recorded

    path = out or Path(f"recording-{datetime.now().astimezone():%Y-%m-%d}.jsonl")
    options = HelperOptions(
        str(path),
        shared.assumptions,
        str(shared.rules_file) if shared.rules_file else None,
        str(shared.prices) if shared.prices else None,
        shared.as_of.isoformat() if shared.as_of else None,
        shared.host,
        prints=not quiet,
        digest=content == "digest",
    )
    from cachecost.analysis.fidelity.validation import Validation
    from cachecost.tokens.factory import chosen_counter
    from cachecost.views.fidelity.scores import Score
    from cachecost.views.fidelity.text import score_lines

    done = recorded(parse_upstream(upstream, insecure), port, options, print_diagnostic, page)
    lost = f"; {done.lost:,} not recorded (see above)" if done.lost else ""
    print_diagnostic(f"{count_text(done.calls, 'call')} recorded in {done.path}{lost}")
    if done.calls:
        with reading_bar([done.path]):
            fidelity = Validation([done.path], shared.setup, chosen_counter()).fidelity()
        lines = [*score_lines(Score("all", fidelity.judgements))] if fidelity.judgements else []
        lines += [f"not judged: {where} {why}" for where, why in fidelity.not_judged[:5]]
        if (more := len(fidelity.not_judged) - 5) > 0:
            lines.append(f"not judged: {more:,} more")
        for line in lines:
            print_diagnostic(f"  {line}")
    return exit_code(check_failed=done.lost)


def parse_upstream(text: str, may_be_insecure: bool) -> Any:
    """The upstream as a URL. The error never repeats it: it may hold a password. Raises UsageError."""
    import httpx2

    from cachecost.live.loopback import is_loopback

    try:
        urlsplit(text)
        url = httpx2.URL(text)
    except (ValueError, httpx2.InvalidURL):
        raise click.UsageError("--upstream: expected a URL like https://api.anthropic.com") from None
    if url.userinfo or url.query or url.fragment:
        raise click.UsageError("--upstream: expected a URL without a name, a password, a query or a fragment")
    if url.scheme not in ("http", "https") or not url.host:
        raise click.UsageError("--upstream: expected a URL that begins with https:// or http://")
    if url.scheme == "http" and not is_loopback(url.host) and not may_be_insecure:
        raise click.UsageError(
            "--upstream: http:// sends keys and prompts unencrypted to another machine; use https://, or --insecure"
        )
    return url
