"""Which tools a simulated model may call. The client runs them, so they must not change anything.

A tool is called only if its name says that it reads and contains no word that says otherwise; a shell gets one fixed
command that prints a word. The user may allow other tools by name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cachecost.live.server.answers.blocks import Item, items, mapping
from cachecost.live.server.answers.schema import minimal, required_names


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
        return _shell_call(name, schema)
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


def _shell_call(name: str, schema: Item) -> HarmlessCall | None:
    """A call with the fixed command; None if the shell's parameters are not recognized."""
    needed = set(required_names(schema))
    for key, told in mapping(schema.get("properties")).items():
        others = [_words(str(other)) for other in needed - {key}]
        if "".join(_words(key)) in COMMANDS and all(SHELL_OPTIONS.issuperset(words) for words in others):
            is_list = str(mapping(told).get("type")).lower() == "array"
            return HarmlessCall(name, {**_arguments(name, schema), key: COMMAND.split() if is_list else COMMAND})
    return None


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
