"""Reference pages, code pages and the scenario schema are what the code says now; `make docs` writes them."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.listing import ModelRow, model_rows, rule_rows
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from slow_cases import mostly_slow
from tools.reference import generated, models, update
from tools.reference.__main__ import main

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "simulator" / "cachecost"


def test_no_generated_file_is_out_of_date(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        update(ROOT)
    assert update(ROOT, only_list=True) == [], "run `make docs` and read the diff"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all generated files, made by the command."""
    root = tmp_path_factory.mktemp("checkout")
    words = [sys.executable, "-m", "tools.reference", str(root)]
    made = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.splitlines() == [f"updated {path}" for path in sorted(generated())]
    return root


def test_the_command_writes_every_file(checkout: Path) -> None:
    assert update(checkout) == []


PAGES = [
    "docs/reference/rules.md",
    "docs/codes/CC101.md",
    "docs/explanation/seeds.md",
    "scenarios/scenario.schema.json",
]


@pytest.mark.parametrize(("path", "content"), mostly_slow(product(PAGES, ["old\n", None]), 3))
def test_an_outdated_or_missing_file_is_found_and_written(checkout: Path, path: str, content: str | None) -> None:
    (checkout / path).unlink() if content is None else (checkout / path).write_text(content)
    assert update(checkout, only_list=True) == [path]
    assert update(checkout) == [path]
    assert (checkout / path).read_text(encoding="utf-8") == generated()[path]


def test_a_page_that_is_no_longer_generated_is_found_and_deleted(checkout: Path) -> None:
    page = checkout / "docs/codes/CC999.md"
    page.write_text("# CC999\n")
    assert update(checkout, only_list=True) == update(checkout) == ["docs/codes/CC999.md"]
    assert not page.exists()


def test_models_without_a_price_are_named_together(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def price_of(row: ModelRow, book: PriceBook) -> None:
        if row.id in ("claude-opus-5", "gpt-5.4"):
            raise CannotEvaluate(f"no price known for {row.id} on host {row.host}")

    monkeypatch.setattr(models, "price_of", price_of)
    assert main(checkout) == 0
    *missing, _, advice = capsys.readouterr().err.splitlines()
    assert "no price known for claude-opus-5 on host bedrock" in missing
    assert "no price known for gpt-5.4 on host openai" in missing
    assert "[[same]] of providers/prices/hosts.toml" in advice
    page = (checkout / "docs/reference/models.md").read_text(encoding="utf-8")
    assert re.search(r"^\| `claude-opus-5` .*\|( +\|){5}$", page, flags=re.M)


def test_every_dated_row_is_on_the_page_of_rules_with_a_source_that_the_page_lists() -> None:
    page = generated()["docs/reference/rules.md"]
    sections = {name: text.splitlines() for name, text in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.M | re.S)}
    groups = dict(re.findall(r"^\| ([\w-]+ group \d+) \| (.*) \|$", page, re.M))
    sources = set(re.findall(r"^\| (\S+) \| (\d{4}-\d\d-\d\d) \| .+ \|$", page, re.M))
    cells = {
        name: [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
        for name, lines in sections.items()
    }
    named = re.compile(r"\[([\w-]+ group \d+)\]")
    for row in rule_rows():
        if row.as_on is None:
            model = "all" if row.model == "*" else f"`{row.model}`"
            found = [
                line
                for line in cells[row.rule]
                if row.host in line[0].split(", ")
                and model in named.sub(lambda group: groups[group[1]], line[1])
                and str(row.source_date) in line[5]
            ]
            assert any(tuple(line[5].split(";")[0].split()) in sources for line in found), row


def test_every_model_of_every_host_is_on_the_page_of_models() -> None:
    lines = generated()["docs/reference/models.md"].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| `")]
    shown = {(model, host) for models, hosts, *_ in rows for model in models.split(", ") for host in hosts.split(", ")}
    assert shown == {(f"`{row.id}`", row.host) for row in model_rows(RuleBook())}


def test_every_model_has_a_price() -> None:
    assert models.missing_prices() == []


def test_the_package_imports_no_tool() -> None:
    imports = re.compile(r"^\s*(?:from|import) tools\b", flags=re.M)
    assert [path for path in PACKAGE.rglob("*.py") if imports.search(path.read_text(encoding="utf-8"))] == []


def test_a_data_file_names_the_command_that_writes_it() -> None:
    texts = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*") if path.suffix in (".toml", ".json"))
    written = re.compile(r"Written by `([^`]+?)(?: (?:LOG|FOLDER)… --write)?`")
    named = {command for text in texts for command in written.findall(text)}
    tools = {f"python -m tools.calibrate{part}" for part in ("", ".makers", ".margins", ".maker_margins", ".scripts")}
    assert named == {"make prices", *tools}
