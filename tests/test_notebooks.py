"""Every notebook runs, top to bottom, offline, says what it finds, and leaves nothing behind."""

from __future__ import annotations

import ast
import os
import re
import runpy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

import cachecost

ROOT = Path(__file__).parent.parent
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.py"))}
NAMES = ["answer-inquiry", "breakpoints", "first-look", "how-sure", "recorded-session", "ttls"]
LONG = ("answer-inquiry", "breakpoints", "how-sure", "recorded-session", "ttls")
"""Three seconds and more each: CI asks for them apart."""
MAY_IMPORT = {"pathlib", "cachecost", "matplotlib.pyplot"}
CELL = re.compile(r"^# %%.*\n", re.MULTILINE)


def test_there_are_these_notebooks_and_the_readme_names_each() -> None:
    assert list(NOTEBOOKS) == NAMES
    readme = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\(([\w-]+)\.py\)", readme) == [
        "first-look", "answer-inquiry", "breakpoints", "ttls", "recorded-session", "how-sure"
    ]  # fmt: skip


def _files() -> set[Path]:
    return {path for folder in ("notebooks", "reports", "scenarios") for path in (ROOT / folder).rglob("*")}


def _run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that a notebook leaves, run as a script in `folder`; it draws, writes no file and asks no network."""
    from matplotlib import pyplot as plt

    monkeypatch.chdir(folder)
    monkeypatch.setattr("socket.socket.connect", _no_network)
    mpl.use("Agg")
    before = _files()
    try:
        return runpy.run_path(str(NOTEBOOKS[name]))
    finally:
        plt.close("all")
        assert _files() == before


def _no_network(*asked: object) -> None:
    raise AssertionError("a notebook asked the network")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in NAMES]
)
def test_a_notebook_runs(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _run(name, ROOT, monkeypatch)
    assert re.search(r"\d", capsys.readouterr().out)


def test_a_notebook_runs_from_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(_run("first-look", ROOT / "notebooks", monkeypatch)["result"].frame()) == 4


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_a_story_with_a_question_and_its_answer_at_the_top(name: str) -> None:
    _, opening, first, *_ = CELL.split(NOTEBOOKS[name].read_text(encoding="utf-8"))
    assert re.match(r"# # .+\n#\n# \*\*Question\.\*\* ", opening)
    assert "# **Answer.** " in opening
    assert "print(" in first and "assert " in first


@pytest.mark.parametrize("name", NAMES)
def test_no_figure_is_typed_into_the_prose(name: str) -> None:
    prose = "\n".join(re.findall(r"^# .*", NOTEBOOKS[name].read_text(encoding="utf-8"), re.MULTILINE))
    assert not re.search(r"\$\s?\d|\d\s?%[^%]", prose.replace("# %%", ""))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_uses_the_public_names_alone(name: str) -> None:
    tree = ast.parse(NOTEBOOKS[name].read_text(encoding="utf-8"))
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imports |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imports <= MAY_IMPORT
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cachecost"
    }
    assert used <= set(cachecost.__all__)


@pytest.mark.slow
@pytest.mark.skipif(not all(map(find_spec, ("nbclient", "ipykernel", "jupytext"))), reason="needs the notebooks extra")
@pytest.mark.filterwarnings("default")
def test_a_notebook_runs_in_jupyter_and_its_charts_are_pictures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import jupytext
    from nbclient import NotebookClient

    before = _files()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "simulator"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = jupytext.read(NOTEBOOKS["first-look"])
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}})
    client.execute()
    shown = [output.data for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("image/png" in data for data in shown) == 2
    assert sum("<table" in data.get("text/html", "") for data in shown) >= 3
    assert _files() == before
