"""The environment of a command: the simulated API's address, no key of yours, no way to the network."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping, Sequence

from cachecost.live.agent_runs.run_clock import RunClock
from cachecost.live.keys import SHORTEST
from cachecost.live.server.arrival import PLACEHOLDER

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
SECRET = re.compile(
    r"(?:^|_)(?:API)?(?:KEYS?|TOKEN|SECRETS?|PASSWORD|PASSWD|CREDENTIALS?)(?:_[A-Z0-9]+)?$", re.IGNORECASE
)
"""Names of variables whose values are taken for credentials: the command does not get them."""
ELSEWHERE = re.compile(
    r"(ANTHROPIC|OPENAI|AZURE|GOOGLE|GEMINI|AWS|CLAUDE_CODE)_.*|(HTTPS?|ALL|NO)_PROXY|PYTHONHASHSEED", re.IGNORECASE
)
"""Names of variables that would lead a client to another host or account."""
NOWHERE = "http://127.0.0.1:9"
"""A proxy that refuses: nothing listens on the port of the discard service (RFC 863)."""
SHORTEST_NAME = 4
EVERYDAY_NAMES = frozenset(
    {"root", "user", "users", "admin", "runner", "ubuntu", "debian", "node", "nobody", "vscode", "codespace", "jenkins"}
    | {"gitlab-runner", "build", "builder", "ci-user", "docker", "agent", "work", "worker", "home", "server", "host"}
    | {"localhost", "test", "tester", "developer", "default", "macbook", "desktop", "laptop", "claude", "python"}
)
HASH_SEEDS = ("1", "2")
"""PYTHONHASHSEED of each run: sets of text are in another order in each, and the same on every machine."""


def environment_of(
    outside: Mapping[str, str],
    more: Mapping[str, str],
    address: str,
    turns: Sequence[str],
    run: int,
    clock: RunClock | None = None,
) -> dict[str, str]:
    """The variables of a command in its `run`-th run (from 0), whose API is at `address`. `more` are the scenario's;
    `clock` is that of the run, if it is not that of the machine.
    """
    kept = {name: value for name, value in outside.items() if not (SECRET.search(name) or ELSEWHERE.fullmatch(name))}
    here = {
        **kept,
        "PYTHONHASHSEED": HASH_SEEDS[run],
        **more,
        "ANTHROPIC_BASE_URL": address,
        "OPENAI_BASE_URL": f"{address}/v1",
        "GOOGLE_GEMINI_BASE_URL": address,
        **dict.fromkeys(KEYS, PLACEHOLDER),
        "CACHECOST_TURNS": json.dumps(turns, ensure_ascii=False),
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }
    return clock.set_in(here) if clock else here


def machine_names(outside: Mapping[str, str]) -> dict[str, str]:
    """The names of this machine and its user, where they are no everyday words."""
    user = outside.get("USER") or outside.get("LOGNAME") or outside.get("USERNAME") or ""
    names = {"host name": socket.gethostname(), "user name": user}
    return {what: name for what, name in names.items() if len(name) >= SHORTEST_NAME and name not in EVERYDAY_NAMES}


def refusing_proxies() -> dict[str, str]:
    """Variables that lead clients that respect them to a proxy that refuses."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {case(name): NOWHERE for name in names for case in (str.upper, str.lower)}


def secrets_in_environment(outside: Mapping[str, str]) -> list[str]:
    """The values of credentials, longest first: nothing that is shown may contain them."""
    found = {value for name, value in outside.items() if SECRET.search(name) and len(value) >= SHORTEST}
    return sorted(found, key=lambda secret: (-len(secret), secret))
