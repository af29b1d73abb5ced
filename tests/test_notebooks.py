"""Every notebook runs, top to bottom, offline, from the project's folder and from its own."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.parametrize("folder", [ROOT, ROOT / "notebooks"], ids=["from the project", "from notebooks"])
def test_a_notebook_runs(notebook: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    mpl.use("Agg")
    names = runpy.run_path(str(notebook))
    assert len(names["result"].frame()) >= 2


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-look"]
