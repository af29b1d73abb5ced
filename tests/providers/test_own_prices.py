"""`--prices FILE`: a user's own prices over the public ones, and every fault of the file with its line."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.providers.hosts import hosts
from cachecost.providers.pricerows import OVERLAY
from cachecost.providers.prices import PriceBook
from price_queries import prices_of

HOST = "anthropic"
NAMES = "batch, flex, fast, priority, ultrafast, us, regional, discount, free, ft"
KNOWN = ", ".join(hosts())
NEAR = "on host anthropic (did you mean 'claude-opus-4-6'?)"


@pytest.fixture
def written(tmp_path: Path):
    """A price file with this text, as a book."""

    def write(text: str) -> PriceBook:
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return PriceBook.load(path)

    return write


def faults_of(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        PriceBook.load(path)
    return [str(fault).replace(str(path), "mine.toml") for fault in caught.value.faults]


def test_a_class_that_a_row_names_and_those_it_does_not(written) -> None:
    book = written('[[price]]\nmodel = "claude-opus-4.6"\ninput = 4.5\nread = 0.4\n')
    found = prices_of(book, HOST, "claude-opus-4-6", None, 10)
    assert (found.input, found.read, found.output) == (Decimal("4.5"), Decimal("0.4"), 25)
    assert found.source.startswith(str(Path(book.versions.split(" + ")[-1])))
    assert prices_of(book, HOST, "claude-opus-5", None, 10).input == 5


def test_days_and_lengths_of_a_row(written) -> None:
    book = written(
        '[[price]]\nmodel = "claude-opus-5"\ninput = 4\nfrom = 2026-08-01\nto = 2026-09-01\n'
        '[[price]]\nmodel = "claude-opus-5"\ninput = 3\nabove = 50_000\nfrom = 2026-08-01\nto = 2026-09-01\n'
    )
    asked = [
        (date(2026, 7, 31), 1),
        (date(2026, 8, 1), 50_000),
        (date(2026, 8, 31), 50_001),
        (date(2026, 9, 1), 50_001),
    ]
    assert [prices_of(book, HOST, "claude-opus-5", day, tokens).input for day, tokens in asked] == [5, 4, 3, 5]


def test_the_later_row_wins(written) -> None:
    row = '[[price]]\nmodel = "claude-opus-5"\ninput = {}\n'
    assert prices_of(written(row.format(4) + row.format(3)), HOST, "claude-opus-5", None, 1).input == 3


def test_a_negotiated_discount_needs_no_request(written) -> None:
    book = written('[[modifier]]\nname = "discount"\nmodels = ["*"]\nexcept = ["claude-opus-5"]\nmultiplier = 0.85\n')
    assert prices_of(book, HOST, "claude-opus-4-6", None, 1).output == Decimal("21.25")
    assert prices_of(book, HOST, "claude-opus-5", None, 1).output == 25
    assert prices_of(book, HOST, "claude-opus-4-6", None, 1, batch=True).output == Decimal("10.625")


def test_an_own_multiplier_of_batches_replaces_the_public_one(written) -> None:
    book = written('[[modifier]]\nname = "batch"\nmodels = ["claude-opus-5"]\nmultiplier = 0.4\n')
    assert prices_of(book, HOST, "claude-opus-5", None, 1, batch=True).input == 2
    assert prices_of(book, HOST, "claude-opus-4-6", None, 1, batch=True).input == Decimal("2.5")


def test_a_price_of_nothing_is_a_price(written) -> None:
    found = prices_of(written('[[price]]\nmodel = "claude-opus-5"\nread = 0\n'), HOST, "claude-opus-5", None, 1)
    assert found.read == 0


def test_an_empty_file_changes_nothing(written) -> None:
    public = prices_of(PriceBook.load(), HOST, "claude-opus-5", None, 1)
    assert prices_of(written("# nothing yet\n"), HOST, "claude-opus-5", None, 1) == public


def test_unknown_models_stay_unknown(written) -> None:
    with pytest.raises(CannotEvaluate, match="unknown model 'gpt-4o'"):
        prices_of(written('[[price]]\nmodel = "claude-opus-5"\ninput = 1\n'), HOST, "gpt-4o", None, 1)


SIX = """\
[[price]]
model = "claude-opus-46"
inptu = 4
output = -1
from = "2026-03-07"

[[price]]
host = "antropic"
model = "claude-opus-5"

[[price]]
input = true
above = 1.5
from = 2026-03-07
to = 2026-03-07

[[modifier]]
name = "batsh"
models = "claude-opus-5"
multiplier = "half"
not_with = ["quick"]

[prises]
"""


def test_every_fault_at_once_with_its_line(tmp_path: Path) -> None:
    assert faults_of(tmp_path, SIX) == [
        f"mine.toml:2 price[0].model: unknown model 'claude-opus-46' {NEAR}",
        "mine.toml:3 price[0].inptu: unknown key (did you mean 'input'?)",
        "mine.toml:4 price[0].output: expected USD per 10**6 tokens, a number from 0; got -1",
        "mine.toml:5 price[0].from: expected a day like 2026-03-07; got '2026-03-07'",
        "mine.toml:7 price[1]: no price in it; expected one of input, read, write_5m, write_1h, output",
        f"mine.toml:8 price[1].host: no rules for host 'antropic' (did you mean 'anthropic'?); known: {KNOWN}",
        "mine.toml:11 price[2]: model is missing",
        "mine.toml:12 price[2].input: expected USD per 10**6 tokens, a number from 0; got True",
        "mine.toml:13 price[2].above: expected tokens, a whole number from 0; got 1.5",
        "mine.toml:15 price[2].to: expected a day after from = 2026-03-07; got 2026-03-07",
        f"mine.toml:18 modifier[0].name: expected one of {NAMES}; got 'batsh' (did you mean 'batch'?)",
        "mine.toml:19 modifier[0].models: expected a list of models, or [\"*\"]; got 'claude-opus-5'",
        "mine.toml:20 modifier[0].multiplier: expected a number from 0; got 'half'",
        f"mine.toml:21 modifier[0].not_with: expected a list of {NAMES}; got ['quick']",
        "mine.toml:23 prises: expected [[price]], [[modifier]] or [[gpu]] (did you mean 'price'?)",
    ]


OPUS = "[[price]]\nmodel = 'claude-opus-5'\ninput = 1\n"
US = "[[modifier]]\nname = 'us'\n"
ONE_FAULT = [
    ("[price]\nmodel = 'x'\n", "1 price: expected [[price]], one table a row"),
    ("price = 3\n", "1 price: expected [[price]], one table a row"),
    ("[[price]]\nmodel = 5\ninput = 1\n", "2 price[0].model: unknown model '5' on host anthropic"),
    (f"{OPUS}read = nan\n", "4 price[0].read: expected USD per 10**6 tokens, a number from 0; got NaN"),
    (f"{OPUS}from = 2026-03-07T10:00:00\n", "4 price[0].from: expected a day like 2026-03-07; got 2026-03-07 10:00:00"),
    (f"{OPUS}source = 5\n", "4 price[0].source: expected text; got 5"),
    (f"{OPUS}{OPUS}to = 3\n", "7 price[1].to: expected a day like 2026-03-07; got 3"),
    (f"{US}models = ['*']\n", "1 modifier[0]: multiplier is missing"),
    (
        f"{US}models = ['*', 'claude-opus-46']\nmultiplier = 1\n",
        f"3 modifier[0].models: unknown model 'claude-opus-46' {NEAR}",
    ),
]


@pytest.mark.parametrize(("text", "fault"), ONE_FAULT)
def test_one_fault(tmp_path: Path, text: str, fault: str) -> None:
    assert faults_of(tmp_path, text) == [f"mine.toml:{fault}"]


def test_what_is_not_toml_is_said_with_its_place(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, "[[price]]\nmodel = \n")
    assert fault.startswith("mine.toml:2:9 is not TOML: ")
    (fault,) = faults_of(tmp_path, '[[price]]\nmodel = """\n')
    assert fault.startswith("mine.toml:3 is not TOML: ")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    missing, binary = tmp_path / "none.toml", tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    for path, reason in [
        (missing, "No such file or directory"),
        (binary, "it is not UTF-8 text"),
        (tmp_path, "Is a directory"),
    ]:
        with pytest.raises(InputError) as caught:
            PriceBook.load(path)
        assert str(caught.value) == f"{path} cannot be read: {reason}"


def test_the_overlay_is_a_price_file(tmp_path: Path) -> None:
    """Its rows pass the check of a user's file: the head of the overlay is the documentation of the format."""
    rows = OVERLAY.read_text(encoding="utf-8").split("\n[[price]]", 1)[1]
    path = tmp_path / "overlay.toml"
    path.write_text("[[price]]" + rows, encoding="utf-8")
    book, public = PriceBook.load(path), PriceBook.load()
    for model in ("claude-mythos-5", "claude-sonnet-5-5", "claude-opus-5"):
        mine, theirs = (prices_of(source, HOST, model, None, 1, batch=True) for source in (book, public))
        assert (mine.input, mine.read, mine.output) == (theirs.input, theirs.read, theirs.output)
