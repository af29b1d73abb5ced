"""Two recordings beside each other: which call of one corresponds to which of the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from cachecost.analysis.bill.timeline import TimelineCall, session_timelines
from cachecost.analysis.viewing.block_texts import readable_text
from cachecost.analysis.viewing.blocks import opcodes
from cachecost.analysis.viewing.listing import SessionListing, ViewedSession
from cachecost.analysis.viewing.replay import CallReading, calls_of_session
from cachecost.conversations.calls import RecordedCall
from cachecost.prompts.blocks import Block

CallKey = bytes
"""What a call adds to its conversation; empty where that is not known."""


def calls_by_time(listing: SessionListing) -> list[TimelineCall]:
    """The calls of all sessions in the order of time."""
    found = [one for calls in session_timelines(listing.account, listing.keys).values() for one in calls]
    return sorted(found, key=lambda one: one.call.start or 0.0)


def call_keys(listing: SessionListing, reading: CallReading, calls: Sequence[TimelineCall]) -> list[CallKey]:
    """The key of each call. Raises InputError where a file can no longer be read."""
    keys: dict[int, CallKey] = {}
    for key in listing.keys:
        keys.update(_keys_of_session(listing.open_key(key), reading))
    return [keys.get(id(one.call), b"") for one in calls]


def _keys_of_session(session: ViewedSession, reading: CallReading) -> Mapping[int, CallKey]:
    if not session.has_blocks:
        return {}
    pairs = calls_of_session(session, reading.read(session.files))
    return {id(session.calls[number - 1].call): _key(call) for number, call in pairs if number}


def _key(call: RecordedCall) -> CallKey:
    """A digest of the last message: its text, else its blocks. Ids of tool calls differ from run to run."""
    message = call.request.thread.message
    said = blake2b(digest_size=16)
    for block in message.blocks if message else ():
        said.update(_said(block))
    return said.digest() if message else b""


def _said(block: Block) -> bytes:
    text = readable_text(block)
    return block.digest if text is None else f"{block.kind} {len(text)} {text}".encode("utf-8", "surrogatepass")


def pair_calls(left: Sequence[CallKey], right: Sequence[CallKey]) -> list[tuple[int, int]]:
    """The indices of calls that correspond, rising: of equal keys, and between those in the order they stand."""
    pairs: list[tuple[int, int]] = []
    for kind, i, j, k, m in opcodes(left, right):
        if kind in ("equal", "replace"):
            pairs += zip(range(i, j), range(k, m), strict=False)
    return pairs
