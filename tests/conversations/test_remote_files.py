"""Logs at URLs: what S3 and a web server hold gives what the same files on a disk give, and each failure one line."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from bill_sessions import SessionWriter
from cachecost.conversations.remote_files import PIECE
from growing_log import Shape, write_log

pytestmark = [
    pytest.mark.stores,
    pytest.mark.skipif(
        find_spec("s3fs") is None or find_spec("moto") is None, reason="s3fs and moto are of the extra test"
    ),
]
BUCKET = "logs"
CACHECOST = [sys.executable, "-m", "cachecost"]
ANY_KEYS = {"AWS_ACCESS_KEY_ID": "key-of-a-test", "AWS_SECRET_ACCESS_KEY": "kept-back-of-a-test"}
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "FSSPEC_"))},
    **ANY_KEYS,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_CONFIG_FILE": os.devnull,
}
SCENARIO = """
format: 1
name: remote
as_of: 2026-11-01
model: claude-opus-4-6
tokens: bytes
conversation: {{recording: {recording}}}
strategies: [automatic, none]
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Server:
    """An S3 server, and a folder with the files that its bucket has below the same names."""

    url: str
    folder: Path

    def run(self, *words: str, cwd: Path | None = None, **environment: str) -> Ended:
        variables = {**ENVIRONMENT, "AWS_ENDPOINT_URL": self.url, **environment}
        done = subprocess.run([*CACHECOST, *words], capture_output=True, text=True, env=variables, cwd=cwd, timeout=90)
        return Ended(done.returncode, done.stdout, done.stderr)

    def local(self, name: str) -> str:
        return str(self.folder / name)

    def same(self, *words: str) -> Ended:
        """How a command ends that reads `{}/NAME` in the bucket: as one that reads the same names on the disk."""
        here, there = (self.run(*(word.replace("{}", at) for word in words)) for at in (str(self.folder), REMOTE))
        assert (there.code, there.out.replace(REMOTE, str(self.folder))) == (here.code, here.out)
        assert there.err.replace(REMOTE, str(self.folder)) == here.err
        return there


REMOTE = f"s3://{BUCKET}"


@contextmanager
def s3_server(**environment: str) -> Iterator[str]:
    """A server of its own process, which says in a file where it is."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with NamedTemporaryFile("r") as log:
        with Path(log.name).open("wb") as file:
            running = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, **environment})
        try:
            while not (found := re.search(r"Running on (http://\S+:\d+)", Path(log.name).read_text())):
                assert running.poll() is None, Path(log.name).read_text()
                time.sleep(0.05)
            yield found[1]
        finally:
            running.kill()
            running.wait()


def put(url: str, data: bytes = b"") -> None:
    credential = f"AWS4-HMAC-SHA256 Credential={ANY_KEYS['AWS_ACCESS_KEY_ID']}/20260101/us-east-1/s3/x"
    headers = {"Authorization": credential, "Content-Type": "application/octet-stream"}
    with urlopen(Request(url, data, headers, method="PUT"), timeout=30):
        pass


def write_files(folder: Path) -> None:
    for name, conversations in (("day/a.jsonl", 1), ("day/sub/b.jsonl", 2)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_log(path, Shape(conversations=conversations, requests=4, seed=conversations))
    (folder / "packed").mkdir()
    (folder / "packed/a.jsonl.gz").write_bytes(gzip.compress((folder / "day/a.jsonl").read_bytes(), mtime=0))
    write_log(folder / "long.jsonl", Shape(conversations=4, requests=60))
    (folder / "sessions").mkdir()
    for name in ("one", "two"):
        session = SessionWriter(f"{name}-0000", f"/work/{name}")
        session.write_message("Please do.")
        session.answer(0, 9_000)
        session.write_message("And this.", after_s=400)
        session.answer(0, 9_500)
        text = "".join(json.dumps(line) + "\n" for line in session.lines)
        (folder / f"sessions/{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "packed-sessions").mkdir()
    packed = gzip.compress((folder / "sessions/one.jsonl").read_bytes(), mtime=0)
    (folder / "packed-sessions/one.jsonl.gz").write_bytes(packed)
    (folder / "store.db").write_bytes(b"SQLite format 3\0" + bytes(4_000))
    (folder / "cut.jsonl.gz").write_bytes((folder / "packed/a.jsonl.gz").read_bytes()[:-20])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("logs")
    write_files(folder)
    with s3_server() as url:
        put(f"{url}/{BUCKET}")
        for path in sorted(folder.rglob("*.*")):
            put(f"{url}/{BUCKET}/{path.relative_to(folder).as_posix()}", path.read_bytes())
        yield Server(url, folder)


@pytest.mark.parametrize(
    "name", ["{}/day/a.jsonl", "{}/packed/a.jsonl.gz", "{}/day", "{}/day/", "{}/long.jsonl", "{}/sessions"]
)
def test_a_replay_is_that_of_the_local_files(server: Server, name: str) -> None:
    assert server.same("replay", name, "--json").out.count("\n") > 1


@pytest.mark.parametrize(
    "words", [["{}/sessions"], ["{}/sessions/one.jsonl", "{}/day/a.jsonl"], ["{}/packed-sessions"]]
)
def test_a_bill_is_that_of_the_local_files(server: Server, words: list[str]) -> None:
    bill = json.loads(server.same("bill", *words, "--json").out)
    assert bill["calls"] > 1
    assert bill["skipped"] == []


def test_an_explanation_is_that_of_the_local_files(server: Server) -> None:
    assert json.loads(server.same("explain", "{}/day/", "--json").out)["cost_usd"]
    assert server.same("explain", "{}/sessions/one.jsonl").code == 0


@pytest.mark.parametrize("content", ["keep", "digest"])
@pytest.mark.parametrize("name", ["day", "packed", "sessions/two.jsonl"])
def test_a_recording_has_the_bytes_of_that_of_the_local_files(
    server: Server, tmp_path: Path, name: str, content: str
) -> None:
    made = []
    for at, out in ((str(server.folder), "here"), (REMOTE, "there")):
        ended = server.run("import", f"{at}/{name}", "-o", str(tmp_path / out), "--content", content)
        assert ended.code == 0, ended.err
        made.append({path.name: path.read_bytes() for path in (tmp_path / out).iterdir()})
    assert made[0] == made[1] != {}


def test_what_a_bill_read_of_a_url_is_not_remembered(server: Server, tmp_path: Path) -> None:
    """Another file may be there next time, and only some servers say so."""
    url, store = f"{REMOTE}/changing/one.jsonl", {"CACHECOST_STORE": str(tmp_path)}
    for name in ("one", "two"):
        put(f"{server.url}/{BUCKET}/changing/one.jsonl", (server.folder / f"sessions/{name}.jsonl").read_bytes())
        bill = json.loads(server.run("bill", url, "--json", **store).out)
        assert [row["project"] for row in bill["rows"]] == [f"/work/{name}"]


def test_a_sweep_reads_recordings_by_url_and_by_pattern(server: Server, tmp_path: Path) -> None:
    tables = []
    for at in (str(server.folder), REMOTE):
        path, out = tmp_path / "remote.yaml", tmp_path / f"{len(tables)}.csv"
        path.write_text(SCENARIO.format(recording=f"{at}/day/a.jsonl"), encoding="utf-8")
        given = f"{REMOTE}/day/*.jsonl" if at == REMOTE else f"{at}/day/a.jsonl"
        grid = ["--grid", f"conversation.recording='{given}'", "--grid", "model=claude-opus-4-6,claude-sonnet-4-6"]
        ended = server.run("sweep", str(path), *grid, "--out", str(out), "--jobs", "1")
        assert ended.code == 0, ended.err
        tables.append(out.read_text(encoding="utf-8").replace(at, "AT"))
    assert tables[0] == tables[1]
    assert "AT/day/a.jsonl" in tables[0]


@pytest.mark.parametrize("command", [["replay"], ["bill"], ["explain"], ["import", "-o", "never"]])
@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("s3://logs/day/none.jsonl", "s3://logs/day/none.jsonl cannot be read: no such file or folder"),
        ("s3://logs/none/", "s3://logs/none/ cannot be read: no such file or folder"),
        ("s3://no-bucket/a.jsonl", "s3://no-bucket/a.jsonl cannot be read: The specified bucket does not exist"),
        ("s4://logs/a.jsonl", "s4://logs/a.jsonl cannot be read: expected one of s3://, "),
    ],
)
def test_where_nothing_is_one_line_says_so(
    server: Server, tmp_path: Path, command: list[str], url: str, error: str
) -> None:
    ended = server.run(*command, url, cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(error)
    assert "Traceback" not in ended.err
    assert not any(tmp_path.iterdir())


def test_a_database_is_to_be_downloaded(server: Server) -> None:
    ended = server.run("replay", f"{REMOTE}/store.db")
    assert (ended.code, ended.out) == (2, "")
    assert "is an SQLite database, which can only be read from a disk: download it" in ended.err


def test_a_damaged_packed_file_is_the_error_that_it_is_on_a_disk(server: Server) -> None:
    assert "damaged gzip" in server.same("replay", "{}/cut.jsonl.gz").err


def test_without_credentials_and_with_wrong_ones() -> None:
    with s3_server(INITIAL_NO_AUTH_ACTION_COUNT="0") as url:
        wrong = Server(url, Path()).run("replay", "s3://logs/a.jsonl")
    assert (wrong.code, wrong.out) == (2, "")
    assert "s3://logs/a.jsonl cannot be read: access denied, check the credentials" in wrong.err
    assert not any(secret in wrong.err for secret in ANY_KEYS.values())
    none = Server(url, Path()).run("replay", "s3://logs/a.jsonl", **dict.fromkeys(ANY_KEYS, ""))
    assert (none.code, none.out) == (2, "")
    assert "s3://logs/a.jsonl cannot be read: Unable to locate credentials" in none.err


class Relay(BaseHTTPRequestHandler):
    """Passes requests on to `server.target`; of the bytes from `server.cut_after` on, it sends half."""

    server: Any

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        self._answer(True)

    def _answer(self, has_body: bool) -> None:
        try:
            url = f"{self.server.target}{self.path}"
            answer = urlopen(Request(url, headers=dict(self.headers), method=self.command), timeout=30)
        except HTTPError as error:
            answer = error
        with answer:
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            first = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
            is_cut = has_body and first and int(first[1]) >= self.server.cut_after
            self.wfile.write(data[: len(data) // 2] if is_cut else data)
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class Pages(BaseHTTPRequestHandler):
    """A web server that knows no ranges. It gives `server.data` to who has the signature; cut at `server.cut_after`."""

    server: Any

    def do_HEAD(self) -> None:
        self.send_error(403)  # as of a URL that is signed for GET

    def do_GET(self) -> None:
        if "sig=kept-back%2Fsignature" not in self.path:
            self.send_error(403)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.data)))
        self.end_headers()
        self.wfile.write(self.server.data[: self.server.cut_after])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler], **fields: Any) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a reader that leaves is no error here
    for name, value in fields.items():
        setattr(server, name, value)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("command", [["import", "-o", "out.jsonl"], ["import", "-o", "out"], ["replay"]])
def test_a_connection_that_breaks_in_the_file_is_an_error_and_nothing_is_written(
    server: Server, tmp_path: Path, command: list[str]
) -> None:
    assert (server.folder / "long.jsonl").stat().st_size > PIECE + 1_000_000
    with serving(Relay, target=server.url, cut_after=PIECE) as url:
        ended = Server(url, server.folder).run(*command, f"{REMOTE}/long.jsonl", cwd=tmp_path)
        whole = Server(url, server.folder).run(*command, f"{REMOTE}/day/a.jsonl", cwd=tmp_path)
    assert ended.code == 2
    assert "s3://logs/long.jsonl cannot be read further: " in ended.err
    assert "Traceback" not in ended.err
    assert whole.code == 0, "the relay itself loses nothing"
    assert "long" not in "".join(path.name for path in tmp_path.rglob("*"))
    if command[0] == "replay":
        assert ended.out.count("\n") < 240


def test_a_signed_url_is_read_and_its_signature_shown_nowhere(server: Server, tmp_path: Path) -> None:
    data = (server.folder / "day/a.jsonl").read_bytes()
    page, table, recording = (tmp_path / name for name in ("page.html", "table.csv", "recording"))
    with serving(Pages, data=data, cut_after=None) as url:
        signed = f"{url.replace('//', '//somebody:kept-back-word@')}/a.jsonl?sig=kept-back%2Fsignature&x=kept-back"
        replayed = server.run("replay", signed, "--json", "--csv", str(table), "--html", str(page))
        others = [
            server.run("bill", signed, "--json"),
            server.run("explain", signed),
            server.run("import", signed, "-o", str(recording), "--json"),
            server.run("replay", signed.replace("signature", "other")),
            server.run("replay", signed, "--format", "har"),
        ]
    assert replayed.out.replace(f"{url}/a.jsonl", "A") == server.run(
        "replay", server.local("day/a.jsonl"), "--json"
    ).out.replace(server.local("day/a.jsonl"), "A")
    assert [one.code for one in others] == [0, 0, 0, 2, 2]
    assert f"{url}/a.jsonl cannot be read: access denied, check the credentials" in others[3].err
    written = [path.read_text(encoding="utf-8") for path in (page, table, *recording.iterdir())]
    for text in [*written, *(text for one in (replayed, *others) for text in (one.out, one.err))]:
        assert "kept-back" not in text
        assert "somebody" not in text


def test_a_web_server_that_stops_in_the_file(server: Server) -> None:
    data = (server.folder / "day/a.jsonl").read_bytes()
    with serving(Pages, data=data, cut_after=len(data) // 2) as url:
        ended = server.run("replay", f"{url}/a.jsonl?sig=kept-back%2Fsignature")
    assert ended.code == 2
    assert f"{url}/a.jsonl cannot be read further: " in ended.err
    assert "kept-back" not in ended.err


def test_a_folder_of_a_web_server_is_not_listed(server: Server) -> None:
    ended = server.run("replay", "https://example.invalid/logs/")
    assert (ended.code, ended.err.splitlines()[0]) == (
        2,
        "https://example.invalid/logs/ is a folder, which a web server does not list: name its files",
    )


def test_an_interrupt_ends_the_wait_for_a_server_at_once() -> None:
    class Silent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            time.sleep(60)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    asked: list[str] = []
    with serving(Silent, daemon_threads=True, block_on_close=False) as url:
        running = subprocess.Popen(
            [*CACHECOST, "replay", "s3://logs/a.jsonl"],
            env={**ENVIRONMENT, "AWS_ENDPOINT_URL": url},
            stderr=subprocess.PIPE,
            text=True,
        )
        while not asked:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=10)
    assert (running.returncode, said.strip()) == (130, "interrupted")
