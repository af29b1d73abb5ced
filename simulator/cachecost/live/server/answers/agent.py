"""A small agent in place of a model: some tool calls per turn, then a sentence. It drives whole agent loops.

The client runs the tools, so only those are called that surely change nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachecost.base.formatting import count_text
from cachecost.conversations.readers.common.json_values import object_or_empty, objects_in
from cachecost.live.server.answers.blocks import (
    Item,
    blocks,
    count_tool_calls_of_turn,
    minimal,
    required_names,
    stop_reason,
    text,
    thinking,
    tool_use,
    wanted_schema,
)
from cachecost.live.server.model import ClientCall, ModelAnswer


def _words_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMMAND = "echo cachecost"
FILE = "README.md"
FOLDER = "."
READS = _words_in(
    "read get list ls search find look lookup glob grep view weather forecast fetch echo time date now calculate calc "
    "calculator add sum multiply subtract divide count show describe cat head tree status info check query"
)
"""Words of tools that only read: one of these is the first or the last word of the name."""
CHANGES = _words_in(
    "write edit delete create move send apply patch kill exec execute run remove rm mv cp copy rename update insert "
    "replace set save upload post put push commit merge deploy publish install uninstall drop truncate reset restart "
    "start stop shutdown terminate close submit pay buy order charge transfer book cancel approve reject assign invite "
    "grant revoke enable disable mkdir touch chmod chown sudo eval click type press drag navigate sign format clear "
    "purge wipe archive restore rollback checkout rebase clone sync import export download spawn launch trigger call "
    "invoke schedule reply comment notify subscribe unsubscribe out and or then"
)
"""A tool with one of these words anywhere is never called, like "get_or_create"."""
NOUNS = _words_in("order charge transfer book post schedule comment reply invite call trigger export import download")
"""Words of CHANGES that name what is read after a verb of READS: `get_order`, `lookup_order`."""
SUMS = _words_in("add sum two numbers number integers integer ints int floats values calculator math mcp")
"""`add` is harmless only with these words: `add_numbers` is, `add_user` is not."""
SHELLS = _words_in(
    "bash sh shell terminal exec cmd powershell executecommand runcommand runshellcommand runterminalcommand runbash "
    "executebash execcommand shellexecute runshell runinterminal localshell shellcommand executeshellcommand"
)
COMMANDS = ("command", "cmd", "script", "commandline")
SHELL_OPTIONS = _words_in(
    "description explanation reason title timeout ms seconds is background cwd workdir dir directory"
)
"""Other parameters that a shell may require; one that requires more is not called."""
OUTPUTS = _words_in("final result answer output respond response finish done structured")
"""Words of tools that take a structured answer."""
PLACES = _words_in("list ls glob tree directory dir folder")
BASH = "bash_"
"""Anthropic's own client-side shell tool has a type that begins so, and no schema."""


@dataclass(frozen=True, slots=True)
class HarmlessCall:
    name: str
    arguments: Mapping[str, Any]


def harmless_call(tool: Item, is_forced: bool = False, allowed: Collection[str] = ()) -> HarmlessCall | None:
    """A call of `tool` that changes nothing; None if its name does not say so and is not `allowed`.

    A client that forces a tool wants its arguments as the answer (structured output): then any name without a word of
    CHANGES will do. Server tools and deferred ones are never called.
    """
    name = str(tool.get("name") or "")
    if not name or tool.get("defer_loading") is True:
        return None
    if str(tool.get("type") or "custom") != "custom":
        return HarmlessCall(name, {"command": COMMAND}) if str(tool["type"]).startswith(BASH) else None
    schema = object_or_empty(tool.get("input_schema"))
    if "".join(_words(name)) in SHELLS:
        needed = set(required_names(schema))
        for key, parameter in object_or_empty(schema.get("properties")).items():
            others = [_words(str(other)) for other in needed - {key}]
            if "".join(_words(key)) in COMMANDS and all(SHELL_OPTIONS.issuperset(words) for words in others):
                is_list = str(object_or_empty(parameter).get("type")).lower() == "array"
                return HarmlessCall(name, {**_arguments(name, schema), key: COMMAND.split() if is_list else COMMAND})
        return None
    if name in allowed:
        return HarmlessCall(name, _arguments(name, schema))
    words = _words(name)
    is_harmless = not CHANGES.intersection(words) and ("add" not in words or SUMS.issuperset(words))
    if words and words[0] in READS and NOUNS.intersection(words[1:]):
        only_reads = not (CHANGES - NOUNS).intersection(words)
    else:
        only_reads = bool(words) and is_harmless and (words[0] in READS or words[-1] in READS)
    if not (only_reads or (is_forced and is_harmless)):
        return None
    arguments = _arguments(name, schema)
    return None if _names_a_change(arguments) else HarmlessCall(name, arguments)


def answering_call(body: Item) -> HarmlessCall | None:
    named = (
        tool for tool in objects_in(body.get("tools")) if OUTPUTS.intersection(_words(str(tool.get("name") or "")))
    )
    return next(filter(None, (harmless_call(tool, is_forced=True) for tool in named)), None)


def _names_a_change(value: Any) -> bool:
    """Whether a chosen value (the first of an enum, an example) names a change."""
    if isinstance(value, Mapping):
        return any(map(_names_a_change, value.values()))
    if isinstance(value, list):
        return any(map(_names_a_change, value))
    return isinstance(value, str) and bool(CHANGES.intersection(_words(value)))


def _words(name: str) -> list[str]:
    """The words of a tool's name, in lower case, without the server that it comes from (`mcp__SERVER__name`)."""
    bare = name.rpartition("__")[2] if name.startswith("mcp__") else name
    parted = re.sub(r"([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])", r"\1\3 \2\4", bare)
    return [word.lower() for word in re.findall(r"[A-Za-z]+", parted)]


def _arguments(name: str, schema: Item) -> Mapping[str, Any]:
    tool = _words(name)

    def wording(key: str) -> str | None:
        words = _words(key)
        if {"dir", "directory", "folder", "cwd", "root"}.intersection(words):
            return FOLDER
        if {"path", "paths", "file", "files", "filename", "filepath"}.intersection(words):
            return FOLDER if PLACES.intersection(tool) else FILE
        if {"glob", "pattern"}.intersection(words) and "glob" in tool:
            return FILE
        if {"url", "uri", "link"}.intersection(words):
            return "https://example.com/"
        return {"expression": "1 + 1", "city": "Berlin", "location": "Berlin", "timezone": "UTC"}.get("".join(words))

    made = minimal({"type": "object", **schema}, wording)
    return made if isinstance(made, Mapping) else {}


THOUGHT = "A simulated model thinks one short thought, so that its block is sent back."
MOST_NAMES = 8
BY_NAME = "they may change something, judging by their names; allow them with --answers agent:{calls}:{names}"
DEFERRED, BY_API = "deferred until a tool search", "run by the API, which is not simulated"
AT_LIMIT = "the limit of {calls} tool {noun} per turn was reached; raise it with --answers agent:N"


class AgentAnswerer:
    """Makes `tool_calls` calls of harmless tools per turn, one per reply; then answers with a sentence.

    The next tool is the one that the conversation has called least. Those `allowed` are called regardless of their
    names. `tool_choice` is obeyed as far as that is harmless; a JSON schema is answered with a minimal value. `notes`
    say which of the tools offered were not called.
    """

    def __init__(self, tool_calls: int = 2, allowed: Collection[str] = ()) -> None:
        self._tool_calls = tool_calls
        self._allowed = allowed
        self._reasons: dict[str, str] = {}
        """Why a tool was not called, in the order they were first offered."""
        self._called: set[str] = set()

    @property
    def notes(self) -> Sequence[str]:
        by_reason: dict[str, list[str]] = {}
        for name, reason in self._reasons.items():
            if name not in self._called:
                by_reason.setdefault(reason, []).append(name)
        notes = []
        for reason, names in by_reason.items():
            noun = "call" if self._tool_calls == 1 else "calls"
            why = reason.format(calls=self._tool_calls, names=",".join(names[:MOST_NAMES]), noun=noun)
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            notes.append(f"Tools not called: {', '.join(names[:MOST_NAMES])}{more} ({why})")
        return tuple(notes)

    def answer(self, asked: ClientCall) -> ModelAnswer:
        body = asked.body
        made = count_tool_calls_of_turn(body)
        harmless = (harmless_call(tool, allowed=self._allowed) for tool in objects_in(body.get("tools")))
        ready = [call for call in harmless if call is not None]
        call = self._choose_call(body, made, ready)
        for tool in objects_in(body.get("tools")):
            name = tool.get("name") or tool.get("type")
            if isinstance(name, str) and name not in self._reasons:
                is_custom = str(tool.get("type") or "custom") == "custom"
                reason = DEFERRED if tool.get("defer_loading") is True else BY_NAME if is_custom else BY_API
                is_ready = harmless_call(tool, allowed=self._allowed) is not None
                self._reasons[name] = AT_LIMIT if is_ready else reason
        if call:
            self._called.add(call.name)
        content: list[Item] = []
        if object_or_empty(body.get("thinking")).get("type") in ("enabled", "adaptive") and not made:
            content.append(thinking(THOUGHT))
        if call:
            content.append(tool_use(body, asked.turn, call.name, call.arguments))
        elif (schema := wanted_schema(body)) is not None:
            content.append(text(json.dumps(minimal(schema), ensure_ascii=False)))
        else:
            done = f"Done after {count_text(made, 'tool call')}" if made else "Done"
            content.append(text(f"{done}. (A simulated answer of cachecost serve.)"))
        return ModelAnswer(content, stop_reason(content))

    def _choose_call(self, body: Item, made: int, ready: Sequence[HarmlessCall]) -> HarmlessCall | None:
        """The next call after `made` of this turn; `tool_choice` may force one, which may do harm and is not made then.

        With `any`, the tool for a structured answer comes after enough others.
        """
        replies = (message for message in objects_in(body.get("messages")) if message.get("role") == "assistant")
        content = (block for message in replies for block in blocks(message))
        called = Counter(str(block.get("name")) for block in content if block.get("type") == "tool_use")
        least_called = min(ready, key=lambda call: called[call.name], default=None)
        choice, offered = object_or_empty(body.get("tool_choice")), objects_in(body.get("tools"))
        kind, is_done = choice.get("type"), made >= self._tool_calls
        forced = None
        if kind == "any":
            only = harmless_call(offered[0], is_forced=True) if len(offered) == 1 else None
            structured = answering_call(body)
            forced = (structured if is_done else None) or least_called or structured or only
        elif kind == "tool":
            named = [tool for tool in offered if tool.get("name") == choice.get("name")]
            return harmless_call(named[0], is_forced=True) if named else None
        return forced or (None if is_done or kind == "none" else least_called)
