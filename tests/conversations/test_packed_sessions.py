"""Codex packs sessions of more than a week with zstd. Python unpacks it from 3.14, before that only a package."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations import remote_files as packed_files
from cachecost.conversations.input_files import ZSTD, byte_lines, read_input
from cachecost.conversations.readers.codex.reader import session_files
from cachecost.conversations.readers.detect import detect
from conversations.session_stores import codex_session, write_lines


class FakeZstdError(Exception):
    pass


class _Unpacked(BytesIO):
    """What follows the magic number; a `!` in it is damage."""

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if b"!" in data:
            raise FakeZstdError("checksum")
        return data


@pytest.fixture
def zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that unpacks what is not packed at all."""
    module = ModuleType("not_really_zstd")
    module.open = lambda stream, mode: _Unpacked(stream.read()[len(ZSTD) :])  # type: ignore[attr-defined]
    module.ZstdError = FakeZstdError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(packed_files, "ZSTD_MODULES", ("no_such_module", module.__name__))


@pytest.mark.usefixtures("zstd")
def test_a_packed_session_is_read_like_any_other(tmp_path: Path) -> None:
    plain = write_lines(tmp_path / "rollout-t-1.jsonl", codex_session())
    packed = tmp_path / "rollout-t-1.jsonl.zst"
    packed.write_bytes(ZSTD + plain.read_bytes())
    assert detect(packed) == detect(plain)
    assert (session_files(packed)[0].calls, read_input(packed)) == (session_files(plain)[0].calls, plain.read_bytes())
    assert list(byte_lines(packed)) == list(byte_lines(plain))


@pytest.mark.usefixtures("zstd")
def test_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(ZSTD + b"a!")
    with pytest.raises(InputError) as error:
        read_input(path)
    assert str(error.value) == f"{path} damaged zstd: checksum"


@pytest.mark.usefixtures("zstd")
def test_one_that_is_too_large_unpacked_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHECOST_MAX_UNPACKED", "10")
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(ZSTD + b"x" * 10)
    assert read_input(path) == b"x" * 10
    path.write_bytes(ZSTD + b"x" * 11)
    with pytest.raises(InputError, match="at most 10 bytes when unpacked"):
        read_input(path)


def test_without_a_module_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_files, "ZSTD_MODULES", ("no_such_module",))
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(ZSTD)
    with pytest.raises(InputError) as error:
        read_input(path)
    assert str(error.value) == f"{path} is packed with zstd: unpack it (zstd -d), or install zstandard"
