"""Names of logs at URLs: paths like any other, without secrets. Nothing here needs a package of an extra."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.input_files import input_path, is_url, shown_name
from cachecost.conversations.remote_files import RemotePath, os_error, without_secrets
from cachecost.sweep.grid import Axis


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket/day/a.jsonl", "s3://bucket/day/a.jsonl"),
        ("s3://key:word@bucket/a?versionId=3", "s3://bucket/a"),
        ("abfs://logs@account.dfs.core.windows.net/a", "abfs://logs@account.dfs.core.windows.net/a"),
        ("https://token@host:8443/a%20b.jsonl?sig=x#y", "https://host:8443/a%20b.jsonl"),
        ("https://user:p@ss@host/a", "https://host/a"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown_name(url) == shown
    assert Axis("conversation.recording", (url,)).labels == (shown,)


def test_a_local_name_is_shown_as_it_is() -> None:
    assert shown_name("what?.jsonl") == "what?.jsonl"
    assert not is_url("s3:/bucket/a")
    assert input_path(Path("a")) == input_path("a") == Path("a")
    assert input_path("a", Path("folder")) == Path("folder/a")


def test_a_remote_path_has_the_parts_of_a_path() -> None:
    path = RemotePath("s3:/bucket/day/a.jsonl.gz")
    assert (str(path), path.name, path.stem, path.suffix) == (
        "s3://bucket/day/a.jsonl.gz",
        "a.jsonl.gz",
        "a.jsonl",
        ".gz",
    )
    assert str(path.with_name("b")) == "s3://bucket/day/b"
    assert [str(parent) for parent in path.parents][:2] == ["s3://bucket/day", "s3://bucket"]
    assert RemotePath("s3:/bucket/day") in path.parents
    assert path == RemotePath("s3:/bucket/day/a.jsonl.gz")
    assert path != RemotePath("s3:/bucket/day/b.jsonl.gz")
    assert path.absolute() is path


def test_a_remote_path_is_the_same_in_another_process() -> None:
    path = RemotePath("https:/host/a")
    path.url = "https://host/a?sig=x"
    copy = pickle.loads(pickle.dumps(path))
    assert (copy, copy.url, str(copy)) == (path, path.url, "https://host/a")


def test_a_remote_path_is_no_file_of_the_disk() -> None:
    with pytest.raises(InputError, match=r"s3://bucket/a can only be read from a disk: download it"):
        open(RemotePath("s3:/bucket/a"))  # noqa: SIM115, PTH123


@pytest.mark.parametrize("url", ["s4://bucket/a", "file:///etc/passwd", "github://a:b@c/d", "simplecache::s3://b/a"])
def test_other_urls_are_not_read(url: str) -> None:
    with pytest.raises(InputError, match="cannot be read: expected one of s3://, ") as told:
        input_path(url)
    assert "a:b" not in str(told.value)


def test_an_error_of_a_store_is_one_line_without_secrets() -> None:
    text = "GET 'https://user:word@host/a?sig=hidden&b=c' failed\nRequestId: 1"
    assert os_error(RuntimeError(text)).strerror == "GET 'https://host/a' failed"
    assert os_error(RuntimeError()).strerror == "RuntimeError"
    assert os_error(PermissionError(text)).strerror == "access denied, check the credentials"
    assert os_error(FileNotFoundError(text)).strerror == "no such file or folder"
    assert os_error(TimeoutError()).strerror == "timed out"


def test_a_local_log_imports_nothing_of_this(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text('{"request": {"model": "claude-opus-4-6", "max_tokens": 1, "messages": []}}\n', encoding="utf-8")
    code = (
        "import sys; from cachecost.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print([name for name in sys.modules if name == 'fsspec' or name.endswith('remote_files')])"
    )
    done = subprocess.run([sys.executable, "-c", code, "replay", str(log), "--json"], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
