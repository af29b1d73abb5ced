"""What the bill of a recorded call decides: whether it was accepted, cached anything, and read what was left for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cachecost.base.formatting import count_text
from cachecost.conversations.calls import RecordedCall
from cachecost.prompts.passes import is_server_result, passes
from cachecost.prompts.request import Request
from cachecost.providers.usage import Usage

Confirmation = Literal["", "confirmed"]
UNCONFIRMED: Confirmation = ""
CONFIRMED: Confirmation = "confirmed"
SERVER_TOOLS = ("code_execution_", "tool_search_tool_")
"""What the types of tools begin with that the provider runs, besides web tools."""
SAME = 2
"""Tokens by which the bills of two calls may count one prefix differently."""


@dataclass(frozen=True, slots=True)
class CallBill:
    """The usage of a call, in tokens. `is_summed`: it adds up several passes (server tools, a compaction), so its
    reads and writes are not lengths of prefixes.
    """

    usage: Usage
    is_summed: bool = False

    @property
    def is_cached(self) -> bool:
        """Whether anything was read from the cache or written to it."""
        return bool(self.usage.read or self.usage.write)

    @property
    def uncached(self) -> int:
        """Tokens that were neither read nor written."""
        return self.usage.input_tokens

    @property
    def cached_prefix(self) -> int | None:
        """Tokens up to the last breakpoint that counts: what the call left in the cache. None: the bill has no such
        length.
        """
        return self.usage.read + self.usage.write if self.is_cached and not self.is_summed else None


def bill_of(call: RecordedCall) -> CallBill | None:
    """The bill of a call; None if the log has none, or one without input (an answer that broke off)."""
    return CallBill(call.billed, _is_summed(call)) if call.billed and call.billed.total_input else None


def _is_summed(call: RecordedCall) -> bool:
    answers = [one for one in call.iterations if one.kind == "message"]
    return len(answers) > 1 or bool(call.pass_bills) or _has_passes(call)


def _has_passes(call: RecordedCall) -> bool:
    """Whether server tools made the call several passes, or may have where the answer was not recorded."""
    if not call.response:
        return _has_server_tools(call.request)
    ran = any(is_server_result(block) for block in call.response)
    return ran or len(passes(call.request, call.simulated_response)) > 1


def _has_server_tools(request: Request) -> bool:
    """Web tools stand at the head of the system layer, without a role; the others are tools of a type."""
    types = (str(block.content.get("type")) for block in request.tools.blocks if block.content is not None)
    runs = bool(request.params.get("mcp_servers")) or any(one.startswith(SERVER_TOOLS) for one in types)
    return runs or any(not block.role for block in request.system.blocks)


def without_cache(bill: CallBill) -> str:
    """What was billed where nothing was cached."""
    return f"billed: {count_text(bill.usage.total_input, 'input token')} at full price, none read or written"


def beside_cache(bill: CallBill | None) -> str:
    """What was billed beside what was cached, to end a sentence with; "" where the bill does not show it."""
    if bill is None or bill.is_summed:
        return ""
    return f"; billed: {count_text(bill.uncached, 'input token')} at full price"
