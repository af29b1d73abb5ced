"""The host that commands take a call to have been served by, without `--host`."""

from __future__ import annotations

from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall
from cachecost.providers.hosts import AUTO_HOST, host_of


def served_by(call: Call | BilledCall) -> str:
    return host_of(call.host, AUTO_HOST, call.request.model if isinstance(call, Call) else call.model)
