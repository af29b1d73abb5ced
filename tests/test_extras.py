"""A package that is not installed: every command and function names its extra and the command that installs it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import cachecost
from cachecost.base import extras as installation
from cachecost.base.extras import (
    EXTRAS,
    WITHOUT_EXTRA,
    Installation,
    NotInstalled,
    how_to_install,
    is_installed,
    require,
)
from slow_cases import mostly_slow

ROOT = Path(__file__).parent.parent
PACKAGE = Path(cachecost.__file__).parent
SCENARIO = str(ROOT / "scenarios/answer-inquiry.yaml")
LOG = str(next(iter(sorted((ROOT / "scenarios/recordings/traffic/rig").glob("*.jsonl")))))
BROUGHT = {"markupsafe": "jinja2", "pydantic_core": "pydantic"}
"""What a package that is always there cannot be without."""
HIDING = """
import sys
for name in {hidden!r}:
    sys.modules[name] = None
from cachecost.cli import main
main({words!r})
"""


def run(hidden: list[str], words: list[str]) -> subprocess.CompletedProcess[str]:
    code = HIDING.format(hidden=hidden, words=words)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("words", "hidden", "extra"),
    mostly_slow(
        [
            (["live", SCENARIO, "--max-usd", "1", "--dry-run"], ["anthropic"], "live"),
            (["live", SCENARIO, "--max-usd", "1", "--yes"], ["anthropic"], "live"),
            (["live", SCENARIO, "--max-usd", "1", "--dry-run"], ["httpx2"], "server"),
            (["serve", "--port", "0"], ["starlette"], "server"),
            (["serve", "--port", "0"], ["uvicorn"], "server"),
            (["mcp"], ["mcp"], "mcp"),
            (["record", "--port", "0"], ["httpx2"], "server"),
            (["record", "--port", "0"], ["starlette", "uvicorn", "httpx2"], "server"),
            (["sweep", SCENARIO, "--grid", "model=claude-opus-4-6", "--out", "f.parquet"], ["pyarrow"], "traces"),
            (
                ["sweep", SCENARIO, "--grid", "model=claude-opus-4-6", "--backend", "dask", "--scheduler", "tcp://x:1"],
                ["distributed", "dask"],
                "dask",
            ),
            (["replay", LOG, "--tokens", "ctok"], ["ctok"], ""),
            (["replay", "s3://logs/a.jsonl"], ["s3fs"], "s3"),
            (["bill", "gs://logs/"], ["gcsfs"], "gcs"),
            (["import", "az://logs/a.jsonl", "-o", "never"], ["adlfs"], "azure"),
            (["explain", "https://example.invalid/a.jsonl?sig=x"], ["fsspec", "aiohttp"], "http"),
            (["bill", LOG, "--backend", "dask", "--scheduler", "tcp://x:1"], ["distributed", "dask"], "dask"),
            (["whatif", LOG, "--tokens", "ctok"], ["ctok"], ""),
            (["run", SCENARIO, "--no-report", "--set", "tokens=ctok"], ["ctok"], ""),
        ],
        5,
    ),
)
def test_a_command_names_the_extra_and_how_to_install_it(words: list[str], hidden: list[str], extra: str) -> None:
    if hidden == ["ctok"] and sys.version_info < (3, 12):
        pytest.skip("ctok needs Python 3.12")
    ended = run(hidden, words)
    assert (ended.returncode, ended.stdout) == (3, "")
    command = how_to_install([name for name in hidden if name in EXTRAS] or hidden)
    assert command in ended.stderr
    if extra:
        assert f"the extra '{extra}'" in ended.stderr
        assert f"[{extra}]" in command
    assert "Traceback" not in ended.stderr
    assert "internal error" not in ended.stderr
    assert not Path("f.parquet.parts").exists()


@pytest.mark.slow
def test_without_any_extra_the_rest_works() -> None:
    hidden = sorted({*EXTRAS, *WITHOUT_EXTRA, "dask"})
    for words in (["--help"], ["replay", LOG, "--json"], ["sweep", "--help"], ["live", "--help"], ["serve", "--help"]):
        assert run(hidden, words).returncode == 0


def test_a_function_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    editable = {"url": "file:///", "dir_info": {"editable": True}}
    here = Installation("uv", "/here/bin/python", editable)
    monkeypatch.setattr(installation, "find_installation", lambda: here)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert not is_installed("anthropic")
    with pytest.raises(NotInstalled) as raised:
        require("cache_cost.client()", "anthropic")
    assert str(raised.value) == (
        "cache_cost.client() needs the extra 'live': anthropic is not installed. "
        "To install: uv pip install --python /here/bin/python --editable '/[live]'"
    )
    with pytest.raises(NotInstalled, match="needs the extras 'live' and 'server': anthropic and uvicorn are not inst"):
        require("x", "anthropic", "uvicorn")
    assert how_to_install(["brotli"]) == "To install: uv pip install --python /here/bin/python brotli"
    monkeypatch.setattr(installation, "find_installation", lambda: None)
    assert how_to_install(["httpx2", "brotli"]) == "To install: pip install httpx2 brotli"


def test_every_extra_is_one_of_the_project() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(known)


def _called(function: ast.expr) -> str:
    """The last part of the name of what is called."""
    return getattr(function, "attr", getattr(function, "id", ""))


def imported_packages() -> set[str]:
    """Top-level modules that the package imports anywhere, lazily or not."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module).partition(".")[0])
            elif isinstance(node, ast.Call) and _called(node.func) == "import_module":
                found |= {one.value.partition(".")[0] for one in node.args[:1] if isinstance(one, ast.Constant)}
    return found - set(sys.stdlib_module_names) - {"cachecost", *BROUGHT}


def test_every_optional_import_has_its_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    always = {re.split(r"[<>=!;\[ ]", line)[0].replace("_", "-").lower() for line in project["dependencies"]}
    brings = packages_distributions()
    optional = {
        name
        for name in imported_packages()
        if not any(one.replace("_", "-").lower() in always for one in brings.get(name, []))
    }
    assert optional - set(EXTRAS) - set(WITHOUT_EXTRA) == set()
