"""Reads the parts of a body that answers depend on, and makes blocks. Missing or malformed parts are empty.

Strings that satisfy the limits, format and pattern of a JSON schema, the most likely first.

A minimal value for a JSON schema, on a best-effort basis.

Which tools a simulated model may call. The client runs them, so they must not change anything.

A small agent in place of a model: some tool calls per turn, then a sentence. It drives whole agent loops.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from cachecost.live.server.model import ClientCall, ModelAnswer
from cachecost.prompts.request import NotAMessage

Item = Mapping[str, Any]


def items(value: object) -> list[Item]:
    """The objects of a list; none if it is not a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def mapping(value: object) -> Item:
    return value if isinstance(value, Mapping) else {}


def blocks(message: Item) -> list[Item]:
    """The blocks of a message; a string is one text block."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else items(content)


def has(message: Item, kind: str) -> bool:
    return any(block.get("type") == kind for block in blocks(message))


def count_tool_calls_of_turn(body: Item) -> int:
    """How many assistant messages called tools since the last message without tool results."""
    calls = 0
    for message in reversed(items(body.get("messages"))):
        if message.get("role") == "assistant":
            calls += has(message, "tool_use")
        elif message.get("role") == "user" and not has(message, "tool_result"):
            break
    return calls


def wants_thinking(body: Item) -> bool:
    return mapping(body.get("thinking")).get("type") in ("enabled", "adaptive")


def wanted_schema(body: Item) -> Item | None:
    """The JSON schema that the text must follow; None without one."""
    wanted = mapping(body.get("output_config")).get("format") or body.get("output_format")
    schema = mapping(wanted).get("schema")
    return schema if mapping(wanted).get("type") == "json_schema" and isinstance(schema, Mapping) else None


def id_of(prefix: str, body: Item, turn: int, number: int = 0) -> str:
    """An id derived from the messages, the turn and the place in the answer, not from the workspace or time."""
    said = json.dumps([body.get("messages"), turn, number], separators=(",", ":"), default=str)
    return f"{prefix}_01{blake2b(said.encode(), digest_size=11, person=prefix.encode()).hexdigest()}"


def tool_use(body: Item, turn: int, name: str, arguments: Item, number: int = 0) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_of("toolu", body, turn, number), "name": name, "input": dict(arguments)}


def thinking(words: str) -> dict[str, Any]:
    """A thinking block; its signature is a digest of its text and only good for being sent back."""
    signature = blake2b(words.encode(), digest_size=32, person=b"signature").hexdigest()
    return {"type": "thinking", "thinking": words, "signature": signature}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def stop_reason(content: Sequence[Item]) -> str:
    """The stop reason that fits the content."""
    return "tool_use" if any(block.get("type") == "tool_use" for block in content) else "end_turn"


Schema = Mapping[str, Any]
WORD = "cachecost"
FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "email": "nobody@example.com",
    "hostname": "example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
CANDIDATES = (
    WORD,
    *FORMATS.values(),
    "a1",
    "A1",
    "A-1",
    "a-1",
    "#000000",
    "1.0",
    "1.0.0",
    "/",
    "a/b",
    "+10000000000",
    "$1",
)
"""Candidates for a pattern; runs of one letter or digit follow."""
LONGEST_RUN = 40
MOST_STEPS = 10**6
"""Of one match: with N repetitions, a string of length L takes up to L to the power of N + 1."""
MOST_NESTED = 10
"""Characters of a string that is tried on a pattern that repeats a group: it may take 2 to the power of that."""
REPETITION = re.compile(r"[*+?]|\{\d*,\d*\}")
REPEATED_GROUP = re.compile(r"\)[*+?{]")


def strings_of(schema: Schema, wanted: Any) -> Iterator[str]:
    """Strings that satisfy the schema, the most likely first."""
    least, most = whole_number(schema.get("minLength")), schema.get("maxLength")
    pattern = _compile_pattern(schema.get("pattern"))
    longest = _longest_tried(pattern.pattern) if pattern else 0
    for tried in _candidates(schema, wanted):
        fitted = tried.ljust(least, "x")
        fitted = fitted[:most] if isinstance(most, int) else fitted
        if pattern is None or (len(fitted) <= longest and pattern.search(fitted)):
            yield fitted


def _candidates(schema: Schema, wanted: Any) -> Iterator[str]:
    if isinstance(form := FORMATS.get(str(schema.get("format"))), str):
        yield form
    if isinstance(wanted, str):
        yield wanted
    yield from CANDIDATES
    for length in range(LONGEST_RUN):
        yield from ("0" * length, "a" * length, "A" * length)


def _compile_pattern(pattern: Any) -> re.Pattern[str] | None:
    """None for a pattern that Python does not support: the value is a guess anyway."""
    try:
        return re.compile(pattern) if isinstance(pattern, str) else None
    except re.error:
        return None


def _longest_tried(pattern: str) -> int:
    """Characters of the longest string for which a match is quick. What is no repetition may count as one."""
    repetitions = len(REPETITION.findall(pattern.replace("(?", "(")))
    longest = int(MOST_STEPS ** (1 / (repetitions + 1)))
    return min(longest, MOST_NESTED) if REPEATED_GROUP.search(pattern) else longest


def whole_number(value: Any) -> int:
    """A limit of a schema that counts something; 0 where it is not a number."""
    return int(value) if isinstance(value, int | float) and value > 0 else 0


Wording = Callable[[str], Any]
"""The value of a string property of this name; None: any."""

DEEPEST = 12
MOST_PARTS = 10_000
"""Values, properties and references that are looked at for one value."""
MOST_CHARACTERS = 1_000_000
"""In the strings of a value."""


def nothing_particular(name: str) -> Any:
    return None


class MinimalValue:
    """Makes values for `schema`. `wording` chooses strings by the property's name."""

    def __init__(self, schema: Schema, wording: Wording = nothing_particular) -> None:
        self._root = schema
        self._wording = wording
        self._parts = MOST_PARTS
        self._characters = MOST_CHARACTERS

    def value(self) -> Any:
        return self._of(self._root, "", 0)

    def _take(self, parts: int = 0, characters: int = 0) -> None:
        """Count what a value has. Raises NotAMessage where that is too much."""
        self._parts -= parts
        self._characters -= characters
        if self._parts < 0:
            raise NotAMessage("schema", f"one whose smallest value has at most {MOST_PARTS:,} parts", "more")
        if self._characters < 0:
            raise NotAMessage("schema", f"one whose smallest value has at most {MOST_CHARACTERS:,} characters", "more")

    def _of(self, schema: Any, name: str, depth: int) -> Any:
        """A value for `schema`, the property `name`; null if it refers to itself endlessly."""
        self._take(parts=1)
        if not isinstance(schema, Mapping) or depth > DEEPEST:
            return None if depth > DEEPEST else WORD
        schema = self._resolve(schema)
        for given in _named_values(schema):
            self._take(characters=len(given) if isinstance(given, str) else len(json.dumps(given)))
            return given
        if branches := schema.get("anyOf") or schema.get("oneOf"):
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            plain = [one for one in branches if isinstance(one, Mapping) and "$ref" not in one]
            return self._of(
                _merge(rest, self._resolve(plain[0] if plain and depth > DEEPEST // 2 else branches[0])),
                name,
                depth + 1,
            )
        made = self._makers().get(_kind(schema))
        return made(schema, name, depth) if made else WORD

    def _makers(self) -> dict[str, Callable[[Schema, str, int], Any]]:
        return {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": lambda schema, *_: _number(schema, 1),
            "number": lambda schema, *_: _number(schema, 0),
            "boolean": lambda *_: False,
            "null": lambda *_: None,
        }

    def _object(self, schema: Schema, name: str, depth: int) -> dict[str, Any]:
        properties = mapping(schema.get("properties"))
        other = schema.get("additionalProperties", {})
        return {key: self._of(properties.get(key, other), key, depth + 1) for key in required_names(schema)}

    def _array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        first = list(schema.get("prefixItems") or ())
        rest = schema.get("items", {})
        number = whole_number(schema.get("minItems"))
        self._take(parts=number)
        made = [self._of(one, name, depth + 1) for one in (first + [rest] * number)[:number]]
        return _all_different(made, self._resolve(rest)) if schema.get("uniqueItems") else made

    def _string(self, schema: Schema, name: str, depth: int) -> str:
        self._take(characters=whole_number(schema.get("minLength")))
        return next(strings_of(schema, self._wording(name)), WORD)

    def _resolve(self, schema: Any) -> Schema:
        for _ in range(DEEPEST):
            if not isinstance(schema, Mapping):
                return {}
            if "$ref" in schema or "allOf" in schema:
                self._take(parts=1 + len(mapping(schema.get("properties"))))
            if isinstance(schema.get("$ref"), str):
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                reference = schema["$ref"]
                found: Any = self._root
                for step in reference.removeprefix("#").strip("/").split("/"):
                    step = step.replace("~1", "/").replace("~0", "~")
                    found = found.get(step) if step and isinstance(found, Mapping) else found
                schema = _merge(found if isinstance(found, Mapping) else {}, rest)
            elif isinstance(schema.get("allOf"), list):
                parts = schema["allOf"]
                schema = {key: value for key, value in schema.items() if key != "allOf"}
                for part in parts:
                    schema = _merge(schema, self._resolve(part))
            else:
                break
        return mapping(schema)


def required_names(schema: Schema) -> list[str]:
    """The names of required properties."""
    names = schema.get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def minimal(schema: Schema, wording: Wording = nothing_particular) -> Any:
    """A minimal value for `schema`. Raises NotAMessage where it would be too large."""
    try:
        return MinimalValue(schema, wording).value()
    except RecursionError:
        raise NotAMessage("schema", "one that does not include itself by allOf", "more") from None


def _named_values(schema: Schema) -> Iterator[Any]:
    if "const" in schema:
        yield schema["const"]
    for listed in ("enum", "examples"):
        if isinstance(schema.get(listed), list) and schema[listed]:
            yield schema[listed][0]
        if listed == "enum" and "default" in schema:
            yield schema["default"]


def _merge(one: Schema, other: Schema) -> Schema:
    both = {**one, **other}
    for key in ("properties", "$defs"):
        if key in one and key in other:
            both[key] = {**one[key], **other[key]}
    if "required" in one and "required" in other:
        both["required"] = list(dict.fromkeys([*required_names(one), *required_names(other)]))
    return both


def _kind(schema: Schema) -> str:
    """The type of `schema`: the first of several that is not null; guessed if missing. Gemini writes it in capitals."""
    type_ = schema.get("type")
    if isinstance(type_, list):
        type_ = next((one for one in type_ if one != "null"), "null")
    if isinstance(type_, str):
        return type_.lower()
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def _number(schema: Schema, whole: int) -> int | float:
    """The valid number nearest to 1."""
    step = schema.get("multipleOf") or (1 if whole else 0)
    low, high = _limit(schema, "inimum", step or 0.5), _limit(schema, "aximum", -(step or 0.5))
    number = 1 if low is None else max(1, low)
    number = number if high is None else min(number, high)
    if step:
        number = math.ceil(number / step) * step
        number -= step if high is not None and number > high else 0
    return int(number) if float(number).is_integer() else number


def _limit(schema: Schema, kind: str, inside: float) -> float | None:
    """The least or greatest value; one that is excluded is moved `inside`."""
    prefix = "m" if f"m{kind}" in schema else ""
    excluded = schema.get("exclusiveM" + kind)
    if isinstance(excluded, int | float) and not isinstance(excluded, bool):
        return excluded + inside
    return schema[prefix + kind] if prefix else None


def _all_different(made: list[Any], schema: Schema) -> list[Any]:
    named = schema.get("enum")
    if isinstance(named, list) and len(named) >= len(made):
        return named[: len(made)]
    return [one + number if isinstance(one, int) else f"{one}{number}" for number, one in enumerate(made)]


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


def harmless_calls(body: Item, allowed: Collection[str] = ()) -> list[HarmlessCall]:
    """A harmless call of each tool that has one, and of those `allowed`, in the order they are offered."""
    made = (harmless_call(tool, allowed=allowed) for tool in items(body.get("tools")))
    return [call for call in made if call is not None]


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
    schema = mapping(tool.get("input_schema"))
    if "".join(_words(name)) in SHELLS:
        needed = set(required_names(schema))
        for key, told in mapping(schema.get("properties")).items():
            others = [_words(str(other)) for other in needed - {key}]
            if "".join(_words(key)) in COMMANDS and all(SHELL_OPTIONS.issuperset(words) for words in others):
                is_list = str(mapping(told).get("type")).lower() == "array"
                return HarmlessCall(name, {**_arguments(name, schema), key: COMMAND.split() if is_list else COMMAND})
        return None
    if name in allowed:
        return HarmlessCall(name, _arguments(name, schema))
    if not (_only_looks(name) or (is_forced and _says_nothing_bad(name))):
        return None
    arguments = _arguments(name, schema)
    return None if _names_a_change(arguments) else HarmlessCall(name, arguments)


def answering_call(body: Item) -> HarmlessCall | None:
    """A call of the tool that takes the structured answer, if one is offered."""
    named = (tool for tool in items(body.get("tools")) if OUTPUTS.intersection(_words(str(tool.get("name") or ""))))
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


def _says_nothing_bad(name: str) -> bool:
    words = _words(name)
    return not CHANGES.intersection(words) and ("add" not in words or SUMS.issuperset(words))


def _only_looks(name: str) -> bool:
    words = _words(name)
    if words and words[0] in READS and NOUNS.intersection(words[1:]):
        return not (CHANGES - NOUNS).intersection(words)
    return bool(words) and _says_nothing_bad(name) and (words[0] in READS or words[-1] in READS)


def _arguments(name: str, schema: Item) -> Mapping[str, Any]:
    made = minimal({"type": "object", **schema}, lambda key: _wording(key, _words(name)))
    return made if isinstance(made, Mapping) else {}


def _wording(key: str, tool: list[str]) -> str | None:
    """What a string of this name should hold in a call of a tool with these words in its name."""
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


THOUGHT = "A simulated model thinks one short thought, so that its block is sent back."


class AgentAnswerer:
    """Makes `tool_calls` calls of harmless tools per turn, one per reply; then answers with a sentence.

    The next tool is the one that the conversation has called least. Those `allowed` are called regardless of their
    names. `tool_choice` is obeyed as far as that is harmless; a JSON schema is answered with a minimal value. `notes`
    say which of the tools offered were not called.
    """

    def __init__(self, tool_calls: int = 2, allowed: Collection[str] = ()) -> None:
        self._tool_calls = tool_calls
        self._allowed = allowed
        self._tally = ToolTally(tool_calls, allowed)

    @property
    def notes(self) -> Sequence[str]:
        """Notes on the tools for the bill."""
        return self._tally.notes

    def answer(self, asked: ClientCall) -> ModelAnswer:
        """See `Answerer`."""
        body = asked.body
        made = count_tool_calls_of_turn(body)
        ready = harmless_calls(body, self._allowed)
        call = _forced_call(body, made, self._tool_calls, ready) or self._next(body, made, ready)
        self._tally.add(body, call.name if call else None)
        content: list[Item] = []
        if wants_thinking(body) and not made:
            content.append(thinking(THOUGHT))
        if call:
            content.append(tool_use(body, asked.turn, call.name, call.arguments))
        else:
            content.append(text(_agent_words(body, made)))
        return ModelAnswer(content, stop_reason(content))

    def _next(self, body: Item, made: int, ready: Sequence[HarmlessCall]) -> HarmlessCall | None:
        if made >= self._tool_calls or _choice(body).get("type") in ("none", "tool"):
            return None
        return _least_called(ready, body)


def _choice(body: Item) -> Item:
    return mapping(body.get("tool_choice"))


def _forced_call(body: Item, made: int, enough: int, ready: Sequence[HarmlessCall]) -> HarmlessCall | None:
    """The call that `tool_choice` forces; None if it forces none, or one that may do harm.

    With `any`, the tool for a structured answer comes after `enough` others.
    """
    choice = _choice(body)
    if choice.get("type") == "any":
        done = answering_call(body) if made >= enough else None
        offered = items(body.get("tools"))
        only = harmless_call(offered[0], is_forced=True) if len(offered) == 1 else None
        return done or _least_called(ready, body) or answering_call(body) or only
    if choice.get("type") == "tool":
        named = [tool for tool in items(body.get("tools")) if tool.get("name") == choice.get("name")]
        return harmless_call(named[0], is_forced=True) if named else None
    return None


def _least_called(ready: Sequence[HarmlessCall], body: Item) -> HarmlessCall | None:
    """The least called tool; of several, the one that is offered first."""
    replies = (message for message in items(body.get("messages")) if message.get("role") == "assistant")
    said = (block for message in replies for block in blocks(message))
    called = Counter(str(block.get("name")) for block in said if block.get("type") == "tool_use")
    return min(ready, key=lambda call: called[call.name], default=None)


def _agent_words(body: Item, made: int) -> str:
    schema = wanted_schema(body)
    if schema is not None:
        value: Any = minimal(schema)
        return json.dumps(value, ensure_ascii=False)
    if made:
        return f"Done after {made} tool {'call' if made == 1 else 'calls'}. (A simulated answer of cachecost serve.)"
    return "Done. (A simulated answer of cachecost serve.)"


MOST_NAMES = 8
BY_NAME = "they may change something, judging by their names; allow them with --answers agent:{calls}:{names}"
DEFERRED = "deferred until a tool search"
OF_THE_API = "run by the API, which is not simulated"
NO_TURN = "the limit of {calls} tool {noun} per turn was reached; raise it with --answers agent:N"


class ToolTally:
    """Why tools were not called, in the order they were first offered. `calls` is the number of calls per turn."""

    def __init__(self, calls: int, allowed: Collection[str]) -> None:
        self._calls = calls
        self._allowed = allowed
        self._reasons: dict[str, str] = {}
        self._called: set[str] = set()

    def add(self, body: Item, called: str | None) -> None:
        """Count a call that offered the tools of `body`; `called` is the one called (None: none)."""
        for tool in items(body.get("tools")):
            name = tool.get("name") or tool.get("type")
            if isinstance(name, str) and name not in self._reasons:
                self._reasons[name] = _reason(tool, self._allowed)
        if called is not None:
            self._called.add(called)

    @property
    def notes(self) -> Sequence[str]:
        """A sentence for each reason why tools were not called."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self._reasons.items():
            if name not in self._called:
                by_reason.setdefault(reason, []).append(name)
        return tuple(self._note(reason, names) for reason, names in by_reason.items())

    def _note(self, reason: str, names: list[str]) -> str:
        noun = "call" if self._calls == 1 else "calls"
        why = reason.format(calls=self._calls, names=",".join(names[:MOST_NAMES]), noun=noun)
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        return f"Tools not called: {', '.join(names[:MOST_NAMES])}{more} ({why})"


def _reason(tool: Item, allowed: Collection[str]) -> str:
    if harmless_call(tool, allowed=allowed) is not None:
        return NO_TURN
    if tool.get("defer_loading") is True:
        return DEFERRED
    return OF_THE_API if str(tool.get("type") or "custom") != "custom" else BY_NAME
