"""The golden files are checked by more than the tests that have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldens import Golden, golden_path, orphans


def test_no_golden_file_is_left_over(orphaned_goldens: list[Path], pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-goldens"):
        return
    assert orphaned_goldens == [], "remove them with: pytest --update-goldens"


def test_path_is_made_of_module_test_and_parameters(tmp_path: Path) -> None:
    path = golden_path(tmp_path / "views" / "test_x.py", "test_y[80-None/a b]")
    assert path == tmp_path / "views" / "goldens" / "test_x" / "test_y-80-None-a-b.txt"


def test_orphans_are_those_of_whole_modules_and_of_modules_that_are_gone(tmp_path: Path) -> None:
    for name in ("test_whole/used.txt", "test_whole/left.txt", "test_part/left.txt", "test_gone/left.txt"):
        path = tmp_path / "goldens" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for name in ("test_whole.py", "test_part.py"):
        (tmp_path / name).touch()
    found = orphans(tmp_path, [tmp_path / "test_whole.py"], [tmp_path / "goldens" / "test_whole" / "used.txt"])
    assert [str(path.relative_to(tmp_path / "goldens")) for path in found] == [
        "test_gone/left.txt",
        "test_whole/left.txt",
    ]


def test_a_difference_is_shown_and_says_how_to_accept_it(tmp_path: Path) -> None:
    golden = Golden(tmp_path / "a.txt", update=False)
    with pytest.raises(AssertionError, match="no golden file; make it with: pytest --update-goldens"):
        golden.check("x\n")
    Golden(tmp_path / "a.txt", update=True).check("one\ntwo\n")
    golden.check("one\ntwo\n")
    with pytest.raises(AssertionError, match=r"accept it with: pytest --update-goldens(.|\n)*-two\n\+three"):
        golden.check("one\nthree\n")


def test_line_ends_count(tmp_path: Path) -> None:
    Golden(tmp_path / "a.txt", update=True).check("one\n")
    with pytest.raises(AssertionError):
        Golden(tmp_path / "a.txt", update=False).check("one\r\n")
