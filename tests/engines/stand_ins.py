"""Imports single modules of an unpacked wheel: all others, and what they need, are stand-ins."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock


class _Names(type):
    """Of a class: all attributes that it lacks are mocks."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=f"{cls.__name__}.{name}")


class _StandIn(ModuleType):
    """A module in which a name is an empty class where it begins with a capital, else a mock."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Names(name, (), {}) if name[0].isupper() else MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made


class _StandIns(MetaPathFinder, Loader):
    """Finds a stand-in for each module of `packages` but `real`, and for each that is not installed."""

    def __init__(self, packages: Collection[str], real: Collection[str]) -> None:
        self.packages = packages
        self.real = real

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        if fullname in self.real or top in sys.stdlib_module_names:
            return None
        if top in self.packages or isinstance(sys.modules.get(top), _StandIn):
            spec = PathFinder.find_spec(fullname, path)
        elif top != fullname or PathFinder.find_spec(top):
            return None
        else:
            spec = None
        made = ModuleSpec(fullname, self, is_package=True)
        made.submodule_search_locations = list((spec and spec.submodule_search_locations) or [])
        return made

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


@contextmanager
def stand_ins(wheel: Path, packages: Collection[str], real: Collection[str]) -> Iterator[None]:
    """Within it, imports find the modules `real` in the folder of a wheel, and stand-ins for the rest of `packages`."""
    finder = _StandIns(packages, real)
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, str(wheel))
    try:
        yield
    finally:
        sys.path.remove(str(wheel))
        sys.meta_path.remove(finder)
