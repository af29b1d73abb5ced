"""What is wrong with a page, as a list of sentences: found by its structure, and by axe-core."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

SERIOUS = ("serious", "critical")
SCRIPT = (Path(__file__).parent / "browser_checks.js").read_text()


def layout_faults(page: Page) -> list[str]:
    """Overflow, text that is cut or covered, and contrast below 4.5. Fails on a page without texts."""
    found = page.evaluate(SCRIPT.strip().rstrip(";"))
    assert found["texts"] > 10, "hardly anything is shown"
    return [str(fault) for fault in found["faults"]]


@cache
def _axe_script() -> str:
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()


def accessibility_faults(page: Page) -> list[str]:
    """What axe-core finds serious or worse."""
    page.evaluate(_axe_script())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']} ({rule['impact']}): {node['target']} {node['html'][:120]}"
        for rule in found["violations"]
        if rule["impact"] in SERIOUS
        for node in rule["nodes"][:3]
    ]
