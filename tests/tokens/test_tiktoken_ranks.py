"""tiktoken's ranks come with the package: never from the network, and nothing is written to a folder of the user's."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import pytest

from cachecost.base.errors import CannotEvaluate
from cachecost.tokens import tokenizers
from cachecost.tokens.tokenizers import CACHE_VARIABLE, ENCODING, RANKS, RANKS_FOLDER, Cl100k, encoder

SENTENCE = "Prompt caching: 95,000 tokens don't cost $0.59375 twice."
TOKENS = 18


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No socket, no folder of the user's, no ranks loaded before."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the network was reached for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    yield
    forget()


def forget() -> None:
    tokenizers.encoder.cache_clear()
    import tiktoken.registry

    tiktoken.registry.ENCODINGS.clear()


@pytest.mark.parametrize("name", RANKS)
def test_the_ranks_in_the_package_are_those_of_tiktoken(name: str) -> None:
    file, digest = RANKS[name]
    assert sha256((RANKS_FOLDER / file).read_bytes()).hexdigest() == digest
    assert encoder(name)(SENTENCE)


def test_nothing_is_written_and_no_variable_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(path.name for path in RANKS_FOLDER.iterdir())
    assert Cl100k()(SENTENCE) == TOKENS
    assert CACHE_VARIABLE not in os.environ
    assert not (tmp_path / "cache").exists()
    assert sorted(path.name for path in RANKS_FOLDER.iterdir()) == before


@pytest.mark.parametrize("chosen", ["", "elsewhere"])
def test_a_folder_that_the_user_chose_stays_chosen_and_is_not_read(
    chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = str(tmp_path / chosen) if chosen else ""
    monkeypatch.setenv(CACHE_VARIABLE, value)
    assert Cl100k()(SENTENCE) == TOKENS
    assert os.environ[CACHE_VARIABLE] == value
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"dGhl 1\n", None])
def test_a_damaged_installation_is_an_error_and_not_a_download(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / RANKS[ENCODING][0]).write_bytes(content)
    monkeypatch.setattr(tokenizers, "RANKS_FOLDER", tmp_path)
    with pytest.raises(CannotEvaluate, match="is damaged: install cachecost again"):
        Cl100k()(SENTENCE)


@pytest.mark.parametrize("names", [("cl100k_base",) * 8, ("cl100k_base", "o200k_base") * 4])
def test_threads_that_load_at_once_get_the_ranks(names: tuple[str, ...]) -> None:
    with ThreadPoolExecutor(len(names)) as pool:
        counts = list(pool.map(lambda name: len(encoder(name)(SENTENCE)), names))
    assert counts[0] == TOKENS
    assert len(set(zip(names, counts, strict=True))) == len(set(names))
    assert CACHE_VARIABLE not in os.environ


def test_special_tokens_are_text() -> None:
    assert Cl100k()("<|endoftext|>") > 1


HEAVY = ("tiktoken", "ctok", "numpy")


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
        "from cachecost.tokens.tokenizers import count_content\n"
        f"print(count_content(block_of('user', {{'type': 'text', 'text': {SENTENCE!r}}})))\n"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**env, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert f"'cl100k': {TOKENS}" in printed.pop()
