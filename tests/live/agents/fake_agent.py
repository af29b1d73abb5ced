"""An agent in the standard library: sends what MODE says, once or for each line that it reads. No key, no package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from http.client import HTTPConnection
from typing import Any

MODE = os.environ.get("MODE", "plain")
WORDS = [f"word{number}" for number in range(12)]


def system_prompt() -> str:
    """A long prompt, which some modes spoil."""
    spoilt = {
        "time": lambda: time.strftime("%Y-%m-%dT%H:%M:") + f"{time.time() % 60:09.6f}",
        "id": lambda: str(uuid.uuid4()),
        "set": lambda: " ".join(set(WORDS)),
        "keys": lambda: " ".join(f"{name}={value}" for name, value in os.environ.items()),
        "network": network,
    }
    return "You answer questions about a project. " * 200 + spoilt.get(MODE, lambda: "")()


def network() -> str:
    """What an attempt to reach another machine ends with. The address is for documentation only (RFC 5737)."""
    from urllib.error import URLError
    from urllib.request import urlopen  # respects proxies, and takes long to import

    try:
        urlopen("http://192.0.2.1/", timeout=20)
    except URLError as error:
        return f"refused: {error.reason}"
    return "reached"


def tools() -> list[dict[str, Any]]:
    names = ["read_file", "list_files", "search_text", "show_tree"]
    schema = {"type": "object", "properties": {}}
    return [
        {"name": name, "description": f"To {name}.", "input_schema": schema}
        for name in (set(names) if MODE == "tools" else names)
    ]


def ask(messages: list[Any], path: str = "/v1/messages") -> dict[str, Any]:
    head = {"type": "text", "text": system_prompt(), "cache_control": {"type": "ephemeral"}}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 500, "tools": tools(), "system": [head], "messages": messages}
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    address = os.environ["ANTHROPIC_BASE_URL"]
    connection = HTTPConnection(address.removeprefix("http://"))
    connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    if response.status != 200:
        sys.exit(f"status {response.status}")
    answer: dict[str, Any] = json.load(response)
    connection.close()
    return answer


def converse(turn: str, messages: list[Any]) -> None:
    """One turn with its tool calls; `messages` grow."""
    messages.append({"role": "user", "content": turn})
    while True:
        answer = ask(messages)
        messages.append({"role": "assistant", "content": answer["content"]})
        used = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
        if not used:
            return
        results = [{"type": "tool_result", "tool_use_id": one, "content": "some text"} for one in used]
        messages.append({"role": "user", "content": results})


def converse_at_once(turns: list[str]) -> None:
    """A conversation per turn, all at the same time."""
    threads = {turn: threading.Thread(target=converse, args=(turn, list[Any]())) for turn in turns}
    for turn, thread in threads.items():
        thread.start()
        time.sleep(0.01 * (hash(turn) % 3))
    for thread in threads.values():
        thread.join()


def main() -> int:
    turns = sys.argv[1:] or sys.stdin.read().splitlines()
    if MODE == "fails":
        sys.stderr.write(f"no luck with {os.environ.get('MY_SERVICE', '')}\n")
        return 7
    if MODE == "hangs":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", os.environ["MARK"]])
        time.sleep(600)
    if MODE == "unknown":
        ask([{"role": "user", "content": "Hello"}], "/v2/messages?key=1")
    if MODE == "at once":
        converse_at_once(turns)
    elif MODE != "silent":
        messages: list[Any] = []
        for turn in turns:
            converse(turn, messages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
