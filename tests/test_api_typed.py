"""The public names: few, light to import, and typed, as a user's own strict mypy sees them."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cachecost
from cachecost.api import keywords

ROOT = Path(__file__).parents[1]
HEAVY = ("numpy", "pandas", "matplotlib", "tiktoken", "pydantic", "click", "jinja2", "rich")
PUBLIC = [
    "Alternatives", "BillResult", "CannotEvaluate", "CheckResult", "Conversation", "ExplainResult",
    "InputError", "LintFinding", "LintResult", "Monthly", "NextResult", "OptimizeResult", "Projection", "Recording",
    "Replay", "Result", "ValidationResult", "bill", "check", "compare", "explain", "lint", "load_demo",
    "next_message", "optimize", "read", "replay", "validate", "whatif",
]  # fmt: skip
USES = ("right_use.py", "wrong_use.py")
"""In tests/typed: `make lint` checks them, too, with the package, where it takes no time."""
IGNORED = re.compile(r"  # type: ignore.*")


def test_the_public_names_are_these() -> None:
    assert cachecost.__all__ == PUBLIC
    assert dir(cachecost) == sorted([*PUBLIC, "__version__"])
    names: dict[str, object] = {}
    exec("from cachecost import *", names)
    assert sorted(set(names) - {"__builtins__"}) == PUBLIC


def test_what_is_public_is_documented() -> None:
    for name in PUBLIC:
        public = getattr(cachecost, name)
        assert (public.__doc__ or "").strip(), name
        for method, value in inspect.getmembers(public, inspect.isfunction) if inspect.isclass(public) else ():
            if not method.startswith("_") and value.__module__.startswith("cachecost.api"):
                assert value.__doc__ and "->" in str(inspect.signature(value)), f"{name}.{method}"


FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(cachecost, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_names_its_keywords_and_says_what_they_are(name: str) -> None:
    """As type checkers see them (`Unpack[…]` of its source), so `help()` and completion do."""
    function = getattr(cachecost, name)
    shown = inspect.signature(function).parameters
    assert "options" not in shown
    for each in inspect.signature(function.__wrapped__).parameters.values():
        declared = re.fullmatch(r"Unpack\[(\w+)\]", each.annotation)
        wanted = getattr(keywords, declared[1]).__annotations__ if declared else {each.name: each.annotation}
        assert set(wanted) <= set(shown)
        assert not declared or set(wanted) == set(list(shown)[-len(wanted) :])
        assert all(f"`{keyword}`" in function.__doc__ for keyword in (wanted if declared else ()))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_keyword_names_the_function_and_the_nearest(name: str) -> None:
    function = getattr(cachecost, name)
    keyword = next(
        (each.name for each in inspect.signature(function).parameters.values() if each.kind is each.KEYWORD_ONLY), ""
    )
    with pytest.raises(TypeError) as caught:
        function(**{f"{keyword}x": 1})
    near = f" (did you mean '{keyword}'?)" if keyword else ""
    assert str(caught.value) == f"{name}() got an unexpected keyword argument '{keyword}x'{near}"


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'cachecost' has no attribute 'comparee'"):
        getattr(cachecost, "comparee")  # noqa: B009


def _loaded(program: str) -> set[str]:
    code = f"{program}; import sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_cachecost_is_light() -> None:
    assert not _loaded("import cachecost") & {*HEAVY, "cachecost.api"}


def test_using_it_loads_no_chart_and_no_frame() -> None:
    assert not _loaded("from cachecost import *") & {"matplotlib", "pandas", "rich", "starlette", "anthropic", "click"}


def test_it_tells_type_checkers_that_it_is_typed() -> None:
    assert Path(cachecost.__file__).with_name("py.typed").is_file()


@pytest.fixture(scope="module")
def faulty_lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The lines that a user's strict mypy finds fault with, by file: one run, since it reads all of the library."""
    folder = tmp_path_factory.mktemp("typed")
    for name in USES:
        text = (ROOT / "tests" / "typed" / name).read_text(encoding="utf-8")
        (folder / name).write_text(IGNORED.sub("", text), encoding="utf-8")
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary"]
    options += ["--cache-dir", str(ROOT / ".mypy_cache" / "users"), *USES]
    done = subprocess.run([sys.executable, "-m", "mypy", *options], cwd=folder, capture_output=True, text=True)
    found = re.findall(r"^(\S+\.py):(\d+): error:", done.stdout, re.MULTILINE)
    assert (done.stderr, done.returncode, {name for name, _ in found} <= set(USES)) == ("", 1, True)
    return {name: sorted({int(line) for file, line in found if file == name}) for name in USES}


@pytest.mark.slow
def test_a_users_program_is_typed_strictly(faulty_lines: dict[str, list[int]]) -> None:
    assert faulty_lines["right_use.py"] == []


@pytest.mark.slow
def test_a_users_mistakes_are_seen_before_they_run(faulty_lines: dict[str, list[int]]) -> None:
    assert faulty_lines["wrong_use.py"] == [5, 6, 7, 8, 9, 10]
