"""Who the page lets in, and what every answer says to the browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.live.viewer_client import HOST, PORT, TOKEN, Client
from tests.viewer_logs import requests, source_of, write_log

from cachecost.live.loopback import HEADERS

SECRET = "Question 0."


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    folder = tmp_path_factory.mktemp("logs")
    return Client(source_of(write_log(folder / "a.jsonl", list(requests(2)), session="s1")))


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}"])
def test_the_page_answers_to_its_own_names(client: Client, host: str) -> None:
    assert client.get("", host=host).status == 200
    assert client.get("api/start", host=host, origin=f"http://{host}").status == 200


@pytest.mark.parametrize(
    "host", ["127.0.0.1", f"127.0.0.1:{PORT + 1}", "evil.example", f"evil.example:{PORT}", "", f"{HOST}.evil.example"]
)
def test_another_host_is_misdirected(client: Client, host: str) -> None:
    answer = client.get("api/sessions", host=host)
    assert (answer.status, answer.body) == (421, b"")


@pytest.mark.parametrize("origin", ["http://evil.example", f"https://{HOST}", "null", f"http://{HOST}.evil.example"])
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    answer = client.get("api/sessions", origin=origin)
    assert (answer.status, answer.body) == (403, b"")


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/api/sessions", f"/{TOKEN}", f"/{TOKEN[:-1]}/api/sessions", f"/{TOKEN}x/api/sessions"),
        *(f"/x/{TOKEN}/api/sessions", f"/{TOKEN.upper()}/", f"//{TOKEN}/", f"/%00{TOKEN}/", "/favicon.ico"),
    ],
)
def test_without_the_token_there_is_nothing(client: Client, path: str) -> None:
    answer = client.ask(path)
    assert (answer.status, answer.body) == (404, b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_not_allowed(client: Client, method: str) -> None:
    answer = client.ask(f"/{TOKEN}/api/sessions", method)
    assert (answer.status, answer.headers["allow"], answer.body) == (405, "GET, HEAD", b"")


def test_head_is_allowed(client: Client) -> None:
    assert client.ask(f"/{TOKEN}/api/sessions", "HEAD").status == 200


@pytest.mark.parametrize(
    "name",
    [
        *("../app.py", "..%2Fapp.py", "%2e%2e/app.py", "..\\app.py", "%2Fetc%2Fpasswd", "/etc/passwd", "..", "."),
        *("app.py", "README.md", "", "app.js%00.html", "APP.JS", "app.js/", "static/app.js"),
    ],
)
def test_only_the_files_of_the_page_are_served(client: Client, name: str) -> None:
    answer = client.get(f"static/{name}")
    assert answer.status == 404
    assert b"import" not in answer.body and b"root:" not in answer.body


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("", "text/html; charset=utf-8"),
        ("static/index.html", "text/html; charset=utf-8"),
        ("static/style.css", "text/css; charset=utf-8"),
        ("static/app.js", "text/javascript; charset=utf-8"),
        ("api/start", "application/json"),
    ],
)
def test_each_file_has_its_type(client: Client, path: str, kind: str) -> None:
    answer = client.get(path)
    assert (answer.status, answer.headers["content-type"]) == (200, kind)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (f"/{TOKEN}/", {}, 200),
        (f"/{TOKEN}/api/sessions", {}, 200),
        (f"/{TOKEN}/static/app.js", {}, 200),
        (f"/{TOKEN}/api/session/s1/page", {}, 200),
        (f"/{TOKEN}/api/session/nobody", {}, 404),
        (f"/{TOKEN}/api/nothing", {}, 404),
        (f"/{TOKEN}/api/session/s1/whatif?ttl=3h", {}, 400),
        ("/", {}, 404),
        (f"/{TOKEN}/", {"host": "evil.example"}, 421),
        (f"/{TOKEN}/", {"origin": "http://evil.example"}, 403),
    ],
)
def test_every_answer_has_the_headers(client: Client, path: str, headers: dict[str, str], status: int) -> None:
    answer = client.ask(path, **headers)
    assert answer.status == status
    assert {name: answer.headers[name] for name in HEADERS} == dict(HEADERS)
    assert "unsafe" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("api/session/s2", 404),
        ("api/session/s1/call/3", 404),
        ("api/session/s1/call/0", 404),
        ("api/session/s1/call/-1", 404),
        ("api/session/s1/call/x", 404),
        ("api/session/s1/call/1/block/99", 404),
        ("api/session/s1/call/1/block/0", 404),
        ("api/session/s1/whatif?ttl=1d", 400),
        ("api/session/s1/whatif?color=red", 400),
        ("api/session/s1/whatif?model=claude-sonet-4-5", 400),
        ("api/run", 404),
        ("api/compare", 404),
    ],
)
def test_errors_say_what_is_wrong_and_no_more(client: Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status == status
    assert list(answer.json) == ["error"] and answer.json["error"]["message"]
    assert SECRET.encode() not in answer.body
    assert not client.said


def test_an_internal_error_is_told_in_the_terminal(tmp_path: Path) -> None:
    class Broken:
        def start(self) -> None:
            raise RuntimeError(SECRET)

    client = Client(Broken())  # type: ignore[arg-type]
    answer = client.get("api/start")
    assert (answer.status, SECRET.encode() in answer.body) == (500, False)
    assert len(client.said) == 1
