"""What strategies know of hosts and models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class HostFacts(Protocol):
    """How the cache of a model works: its host, and the kind of matching there."""

    @property
    def host(self) -> str: ...
    @property
    def matching(self) -> str: ...


class ModelFacts(HostFacts, Protocol):
    """What a strategy must know of a model. `providers.rules.ModelRules` has it."""

    @property
    def context_window(self) -> int: ...
    @property
    def accepts_forced_choice(self) -> bool: ...


Facts = Callable[[str], ModelFacts]
"""What is known of a model, by its id. Raises CannotEvaluate for an unknown one."""
