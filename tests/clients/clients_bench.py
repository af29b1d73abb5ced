"""What runs a real client against `cachecost serve`, each in a process of its own, and what came of it.

Client and server have nothing but loopback: where it can be had (Linux, as root), a network of their own, and for the
client a process tree of its own, so that a daemon it leaves behind ends with it. A client gets a clean environment and
an empty home; its key is planted, to be looked for afterwards.
"""

import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / ".clients"
SCRIPTS = Path(__file__).parent / "scripts"
KEY = "sk-ant-planted-by-a-test-0123456789"
REQUIRED_IN_CI = ("anthropic", "typescript-sdk", "langchain", "pydantic-ai", "litellm", "llm", "claude-agent-sdk")
REQUIRED_IN_CI += ("openai", "google-genai")
DAY = "2026-11-21"
PATIENCE = 60
"""Seconds that a client has for its session."""
NOBODY = "http://127.0.0.1:9"
"""A proxy that is not there, for what is not loopback; it matters where a network of one's own cannot be had."""
QUIET = {
    "HTTP_PROXY": NOBODY,
    "HTTPS_PROXY": NOBODY,
    "NO_PROXY": "127.0.0.1,localhost",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CONTINUE_TELEMETRY_ENABLED": "0",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
LOOPBACK_ALONE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
OWN_PROCESSES = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
FETCH = "import sys, urllib.request as u; print(u.build_opener(u.ProxyHandler({})).open(sys.argv[1]).read().decode())"


def folder_of(client: str) -> Path:
    """Where a client is installed. Skips the test where it is not, with the reason; in CI some must be there."""
    folder = INSTALLED / client
    if not (folder / "installed").exists():
        failed = INSTALLED / f"{client}.failed"
        why = failed.read_text().strip() if failed.exists() else "run .ci/clients"
        if os.environ.get("CI") == "true" and client in REQUIRED_IN_CI:
            pytest.fail(f"{client} is not installed: {why}")
        pytest.skip(f"{client} is not installed: {why}")
    return folder


def python_of(client: str) -> str:
    return str(folder_of(client) / "bin/python")


def bin_of(client: str, name: str) -> str:
    """A program of a client that npm installed."""
    return str(folder_of(client) / "node_modules/.bin" / name)


@functools.cache
def isolates() -> bool:
    """Whether a network and a process tree of one's own can be had here."""
    if not (sys.platform == "linux" and shutil.which("unshare") and shutil.which("nsenter")):
        return False
    done = subprocess.run([*LOOPBACK_ALONE, *OWN_PROCESSES, "true"], capture_output=True, check=False)
    return done.returncode == 0


@dataclass(frozen=True)
class Done:
    """A client that came to its end."""

    code: int
    out: str
    err: str


class Server:
    """`cachecost serve` on a port of its own, until `end`; it records, and its clock takes 2 s a call."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.record = folder / "record.jsonl"
        command = [sys.executable, "-m", "cachecost", "serve", "--port", "0", "--record", str(self.record)]
        self.process = subprocess.Popen(
            [*(LOOPBACK_ALONE if isolates() else []), *command, "--clock", "+2s", "--as-of", DAY, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._said = ""
        try:
            self.address = self._greeted()
        except BaseException:
            self.close()
            raise

    def _greeted(self) -> str:
        """The address, once the server said all that it says at its beginning."""
        assert self.process.stderr is not None
        while "Ctrl-C" not in self._said:
            line = self.process.stderr.readline()
            assert line, self._said
            self._said += line
        found = re.search(r"^ANTHROPIC_BASE_URL=(http://127\.0\.0\.1:\d+)$", self._said, re.MULTILINE)
        assert found, self._said
        return found[1]

    def environment(self) -> dict[str, str]:
        """All that a client gets from us: nothing of whoever runs the tests but PATH."""
        for name in ("home", "tmp", "work"):
            (self.folder / name).mkdir(exist_ok=True)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "ANTHROPIC_BASE_URL": self.address,
            "ANTHROPIC_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{self.address}/v1",
            "OPENAI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": self.address,
            "GEMINI_API_KEY": KEY,
            **QUIET,
        }

    def run(self, *words: str, given: str = "", **more: str) -> Done:
        """Run a client in an empty folder. `given` is its standard input, `more` stands in its environment too."""
        client = subprocess.Popen(
            [*self._entered(), *words],
            env={**self.environment(), **more},
            cwd=self.folder / "work",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = client.communicate(given, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(client.pid, signal.SIGKILL)
            out, err = client.communicate(timeout=PATIENCE)
            pytest.fail(f"no end after {PATIENCE} s\n{out[-2000:]}\n{err[-2000:]}")
        return Done(client.returncode, out, err)

    def command_line(self, *words: str, **more: str) -> str:
        """What `run` runs, for a shell, with the same clean environment."""
        variables = [f"{name}={value}" for name, value in {**self.environment(), **more}.items()]
        return shlex.join(["env", "-i", *variables, *self._entered(), *words])

    def _entered(self) -> list[str]:
        """The words before a client's that give it the server's network and a process tree of its own."""
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", *OWN_PROCESSES] if isolates() else []

    def bill(self) -> dict[str, Any]:
        """/cachecost.json, so far."""
        entered = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net"] if isolates() else []
        words = [*entered, sys.executable, "-c", FETCH, f"{self.address}/cachecost.json"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        loaded: dict[str, Any] = json.loads(done.stdout)
        return loaded

    def end(self) -> tuple[str, str]:
        """Stop it; what it said on stdout (the bill) and stderr."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, err
        return out, self._said + err

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
