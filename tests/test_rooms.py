"""Imports run one way: each folder imports only from those before it in CONTRIBUTING. A class name is used once."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import cachecost
from tools.house import function_names, imported_names, used_once

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "simulator" / "cachecost"
ORDER = re.findall(r"^\d+\. `(?:cachecost\.)?([a-z_./]+?)/?`", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)


def room_of(module: str) -> str:
    """The folder of a module, as CONTRIBUTING lists it; `cli.py` for what stands at the top."""
    parts = module.split(".")[1:]
    names = ("/".join(parts[:depth]) for depth in (2, 1))
    return next((name for name in names if name in ORDER), "cli.py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def imports_of(path: Path) -> Iterator[str]:
    yield from imports_in(nodes_of(path))


def imports_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cachecost"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


LONGEST_FILE, LONGEST_FUNCTION = 750, 60  # lines; commands declare their options in their signatures
USED_ONCE = 0.105  # the share of private functions with one call site: to be lowered, never raised

FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("room", ORDER)
def test_a_room_imports_only_from_those_before_it(room: str) -> None:
    files = [path for path in FILES if room_of(module_of(path)) == room]
    assert files, f"CONTRIBUTING lists {room}, which has no file"
    before = set(ORDER[: ORDER.index(room) + 1])
    wrong = {f"{path}: {name}" for path in files for name in imports_of(path) if room_of(name) not in before}
    assert not wrong


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def test_no_file_imports_itself_by_way_of_others() -> None:
    """Also not where it is used: an import in a function may be what would be a circle at the top."""
    modules = {module_of(path).removesuffix(".__init__"): path for path in FILES}
    graph = {
        module: {name if name in modules else name.rpartition(".")[0] for name in run_imports_of(path)} - {module}
        for module, path in modules.items()
    }
    TopologicalSorter(graph).prepare()


def run_imports_of(path: Path) -> Iterator[str]:
    """The imports that are run: those for a type checker alone are not."""
    nodes = nodes_of(path)
    guarded = (node for node in nodes if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    hidden = {inner for node in guarded for statement in node.body for inner in ast.walk(statement)}
    yield from imports_in(node for node in nodes if node not in hidden)


def test_no_folder_hides_a_function() -> None:
    """An imported folder becomes an attribute of the package, in the place of a function with its name."""
    assert not {path.name.removesuffix(".py") for path in PACKAGE.iterdir()} & set(cachecost.__all__)


def test_a_class_name_is_used_once() -> None:
    """Records of a reader apart, which have the names of their format."""
    shared = [path for path in FILES if "readers" not in path.parts]
    names = Counter(node.name for path in shared for node in nodes_of(path) if isinstance(node, ast.ClassDef))
    assert not [name for name, count in names.items() if count > 1]


def test_files_and_functions_can_be_read_in_one_go() -> None:
    """The shape that CONTRIBUTING describes, with room for the odd longer one."""
    assert not [path.name for path in FILES if len(path.read_text().splitlines()) > LONGEST_FILE]
    functions = [
        (path.name, node.name)
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LONGEST_FUNCTION
    ]
    assert not functions


def test_helpers_that_are_called_once_stay_few() -> None:
    trees = [tree_of(path) for path in FILES]
    imported = imported_names(trees)
    functions = sum(len(function_names(tree)) for tree in trees)
    assert sum(len(used_once(tree, imported)) for tree in trees) <= USED_ONCE * functions
