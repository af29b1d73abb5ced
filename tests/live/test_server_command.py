"""`cachecost serve` as a process: what it says, that it ends with a bill, and what it does not take."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from decimal import Decimal

import httpx2
import pytest
from api_dialects import CHAT, GEMINI_API, MESSAGES, RESPONSES
from server_fakes import BODY, HEAD, KEY, lines_of

from cachecost import cli
from cachecost.base.extras import how_to_install

RUN = "from cachecost import cli; cli.COMMANDS.setdefault('serve', 'serve:serve'); cli.main()"


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "serve", "serve:serve")


def command(*words):
    return cli.exit_code(
        lambda: cli.cachecost.main(args=["serve", *words], prog_name="cachecost", standalone_mode=False)
    )


class Process:
    """A server of its own, until `end`."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, "serve", "--port", "0", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said = []
        while not (self.said and self.said[-1].startswith("Ctrl-C")):
            line = self.process.stderr.readline()
            assert line, self.said
            self.said.append(line)
        self.address = re.search(r"^ANTHROPIC_BASE_URL=(http://127\.0\.0\.1:\d+)$", "".join(self.said), re.MULTILINE)[1]

    def post(self, **body):
        return httpx2.post(f"{self.address}/v1/messages", headers=HEAD, json={**BODY, **body}, trust_env=False)

    def end(self, number):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, "".join(self.said) + err


def test_calls_are_answered_and_the_bill_is_printed_at_ctrl_c(tmp_path):
    path = tmp_path / "log.jsonl"
    server = Process("--record", str(path), "--clock", "+2s", "--as-of", "2026-11-01", "--fault", "2:529")
    try:
        assert server.post(messages=[{"role": "user", "content": f"my key is {KEY}"}]).status_code == 200
        assert server.post().status_code == 529
        assert server.post(max_tokens=-1).status_code == 400
        page = httpx2.get(f"{server.address}/cachecost", trust_env=False, follow_redirects=True)
        assert page.status_code == 200
    finally:
        code, out, err = server.end(signal.SIGINT)
    assert code == 0
    assert re.match(r"\$\d", out)
    assert "ANTHROPIC_API_KEY=anything\n" in err
    assert "Clock: +2s a call, beginning 2026-11-01 00:00 UTC. The calls and the bill so far: " in err
    assert f"{page.url}\n" in err
    assert f"3 calls recorded in {path}\n" in err
    lines = lines_of(path)
    assert [line["status"] for line in lines] == [200, 529, 400]
    assert [line["timestamp"][:19] for line in lines] == [f"2026-11-01T00:00:0{n}" for n in (0, 2, 4)]
    assert KEY not in out + err + path.read_text() + page.text
    assert "Traceback" not in err


def test_a_server_of_all_apis_and_a_replay_of_its_record(tmp_path, capsys):
    path = tmp_path / "log.jsonl"
    server = Process("--record", str(path), "--clock", "+2s", "--as-of", "2026-11-01", "--fault", "3:500")
    statuses = []
    try:
        for api in (CHAT, RESPONSES, GEMINI_API, MESSAGES) * 2:
            body = api.body(api.model, "Be brief. " * 900, [api.question("Hi")], False)
            address = server.address + api.path.format(model=api.model)
            statuses.append(httpx2.post(address, headers=api.headers, json=body, trust_env=False).status_code)
        bill = httpx2.get(f"{server.address}/cachecost.json", trust_env=False).json()
    finally:
        code, out, err = server.end(signal.SIGINT)
    assert (code, statuses) == (0, [200, 200, 500, 200, 200, 200, 200, 200])
    assert f"\nOPENAI_BASE_URL={server.address}/v1\n" in err
    assert f"\nGOOGLE_GEMINI_BASE_URL={server.address}\n" in err
    assert [line.get("host") for line in lines_of(path)] == ["openai", "openai", "gemini", None] * 2
    main = cli.cachecost.main
    words = ["replay", str(path), "--tokens", "tiktoken", "--json"]
    assert cli.exit_code(lambda: main(args=words, prog_name="cachecost", standalone_mode=False)) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(Decimal(row["cost_usd"]) for row in rows) == Decimal(bill["total"]["cost_usd"])
    assert bill["total"]["usage"]["cache_read_input_tokens"] > 6_000
    assert out.startswith(bill["verdict"])


@pytest.mark.slow
def test_sigterm_ends_it_too_and_no_bill_is_no_bill():
    server = Process("--no-bill")
    try:
        told = httpx2.get(f"{server.address}/v1/models?limit=1000", headers=HEAD, trust_env=False).json()
        shown = httpx2.get(f"{server.address}/cachecost.json", trust_env=False)
    finally:
        code, out, err = server.end(signal.SIGTERM)
    assert (code, out) == (0, "")
    assert "Clock: real time." in err
    assert "claude-opus-4-6" in [one["id"] for one in told["data"]]
    assert not any(name.startswith("_") for one in told["data"] for name in one)
    assert json.loads(shown.text)["format"] == 1


@pytest.mark.slow
def test_a_second_signal_ends_a_server_whose_client_stalls_in_its_body():
    server = Process()
    try:
        assert server.post().status_code == 200
        with socket.create_connection(("127.0.0.1", int(server.address.rpartition(":")[2]))) as client:
            client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
            time.sleep(0.1)
            server.process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                server.process.wait(0.5)
            code, out, err = server.end(signal.SIGINT)
    finally:
        server.process.kill()
    assert (code, "Traceback" in err) == (0, False)
    assert re.match(r"\$\d", out)


def test_a_taken_port_is_one_clear_sentence(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert command("--port", str(port)) == 2
    assert f"--port {port} is not available (Address already in use)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--fault", "3:529x"], "--fault: expected NUMBER:KIND or KIND:CHANCE"),
        (["--clock", "fast"], "--clock: expected 'real', a factor like 'x60'"),
        (["--answers", "nobody"], "nobody"),
        (["--port", "70000"], "--port"),
        (["--host-interface", "0.0.0.0"], "No such option"),
    ],
)
def test_what_it_does_not_take(words, told, capsys):
    assert command("--port", "0", *words) == 2
    assert told in capsys.readouterr().err


def test_a_record_that_is_another_file_is_left_alone(tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    assert command("--port", "0", "--record", str(path)) == 2
    assert "expected a request log to continue, or a new file; got another format" in capsys.readouterr().err
    assert path.read_text() == "mine\n"


def test_it_says_what_must_be_installed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert command("--port", "0") == 3
    assert how_to_install(["uvicorn"]) in capsys.readouterr().err


def test_help_needs_no_server():
    code = (
        "import sys; from cachecost.commands import serve; from click.testing import CliRunner\n"
        "assert CliRunner().invoke(serve.serve, ['--help']).exit_code == 0\n"
        "print(sorted({'starlette', 'uvicorn', 'anthropic', 'httpx2'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
