"""How many small faults put into the code the tests find (`make mutants`).

    python -m tools.mutants [ROOM]... [--sample 60] [--seed 1]

Mutants are those of cosmic-ray: another operator, number, comparison or condition at one place. A sample of each room
is tried, each in a copy of the working tree, by the tests of that room. One that lives is shown: it wants a test, or is
the same program.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "simulator/cachecost"
ROOMS: dict[str, tuple[str, ...]] = {
    "caches": (
        "tests/caches",
        "tests/test_cache_against_naive.py",
        *(f"tests/analysis/test_{name}.py" for name in ("causes", "machine_ranges", "read_ranges", "explain_planted")),
    ),
    "ledger": ("tests/ledger", "tests/test_margin.py", "tests/test_laws.py"),
    "analysis/bill": (
        *(f"tests/analysis/test_bill_{name}.py" for name in ("account", "advice", "evidence", "savings", "states")),
        *(f"tests/analysis/test_bill_{name}.py" for name in ("timeline", "unwritten")),
        "tests/test_cli_bill.py",
    ),
    "tokens": ("tests/tokens",),
}
"""The tests that look for the mutants of each room."""
COPIED = ("simulator", "tests", "scenarios", "reports", "tools", "pyproject.toml", "docs", "benchmarks")
ANNOTATION = "BitOr"
"""`A | B` stands in annotations, which nothing evaluates."""
LONGEST_S = 300


class Mutant(NamedTuple):
    """The `occurrence`-th place of a module where `operator` applies."""

    path: str
    operator: str
    occurrence: int


def find_mutants(room: str) -> Iterator[Mutant]:
    """All mutants of a room."""
    ast, plugins = import_module("cosmic_ray.ast"), import_module("cosmic_ray.plugins")
    operators = {name: plugins.get_operator(name) for name in plugins.operator_names() if ANNOTATION not in name}
    plain = {name: kind() for name, kind in operators.items() if not kind.arguments()}
    for path in sorted((ROOT / PACKAGE / room).rglob("*.py")):
        nodes = list(ast.ast_nodes(ast.get_ast_from_path(path)))
        for name, operator in plain.items():
            count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
            yield from (Mutant(path.relative_to(ROOT).as_posix(), name, number) for number in range(count))


def is_found(mutant: Mutant, copy: Path, tests: Sequence[str]) -> tuple[bool, str]:
    """Whether a test fails with the mutant, and what it changes."""
    plugins: Any = import_module("cosmic_ray.plugins")
    path = copy / mutant.path
    source = path.read_text(encoding="utf-8")
    operator = plugins.get_operator(mutant.operator)()
    made = import_module("cosmic_ray.mutating").mutate_code(source, operator, mutant.occurrence)
    path.write_text(made, encoding="utf-8")
    try:
        is_alive = has_passed(copy, tests)
    finally:
        path.write_text(source, encoding="utf-8")
    changes = difflib.unified_diff(source.splitlines(), made.splitlines(), lineterm="", n=0)
    return not is_alive, "\n".join(line for line in changes if line[0] in "-+" and line[:3] not in ("---", "+++"))


def has_passed(copy: Path, tests: Sequence[str]) -> bool:
    """Whether all tests pass, in time."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(("simulator", "tests", ".")), "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=LONGEST_S, check=False)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rooms", nargs="*", choices=[[], *ROOMS], default=[])
    parser.add_argument("--sample", type=int, default=60, help="mutants of each room; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        for name in COPIED:
            here = ROOT / name
            shutil.copytree(here, copy / name) if here.is_dir() else shutil.copy(here, copy / name)
        for room in options.rooms or ROOMS:
            if not has_passed(copy, ROOMS[room]):
                sys.exit(f"{room}: its tests fail without any mutant")
            every = list(find_mutants(room))
            chosen = Random(options.seed).sample(every, min(options.sample or len(every), len(every)))
            found = 0
            for mutant in chosen:
                is_one, change = is_found(mutant, copy, ROOMS[room])
                found += is_one
                if not is_one:
                    say(f"{mutant.path}\n{change}\n")
            say(f"{room}: {found} of {len(chosen)} found, a sample of {len(every):,}")


if __name__ == "__main__":
    main()
