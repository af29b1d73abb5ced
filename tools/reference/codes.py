"""A page for each code of explain and lint, in Markdown, made from the same tables that the commands read."""

from __future__ import annotations

from cachecost.account.causes import CauseDefinition as Cause
from cachecost.account.causes import coded_causes as causes
from cachecost.analysis.lint.finding import LintCode as Fault
from cachecost.analysis.lint.finding import codes as faults
from cachecost.analysis.lint.loaded_request import LAYERS

INDEX = "index.md"


def pages() -> dict[str, str]:
    """Every page by its file name, the index of all among them."""
    made = {f"{code.code}.md": _page(code, _of_explain(code)) for code in causes().values()}
    made |= {f"{code.code}.md": _page(code, _of_lint(code)) for code in faults().values()}
    return {INDEX: _index(), **made}


def _page(code: Cause | Fault, about: str) -> str:
    return (
        "\n\n".join(
            [
                f"# {code.code} {code.name}",
                about,
                f"**What.** {_sentence(code.what)}",
                f"**Why it costs.** {_sentence(code.why)}",
                f"**What to do.** {_sentence(code.fix)}",
                f"**Source.** {_sentence(code.source)}",
            ]
        )
        + "\n"
    )


def _of_explain(code: Cause) -> str:
    word = "" if code.word == "unavailable" else f" Anthropic's cache diagnostics say `{code.word}`."
    return f"Found by [`cachecost explain`](index.md), cause `{code.cause}`.{word}"


def _of_lint(code: Fault) -> str:
    found = f"Found by [`cachecost lint`](index.md), as {'an' if code.severity == 'error' else 'a'} {code.severity}."
    priced = _links(code)
    return f"{found} In a log, [`cachecost explain`](index.md) prices it as {priced}." if priced else found


def _links(code: Fault) -> str:
    """The codes of explain that a code of lint turns into; with their layers where it depends on them."""
    known = code.explain_codes
    if len(known) == 1:
        return f"[{known[0]}]({known[0]}.md)"
    return ", ".join(
        f"[{code.explains_as[layer]}]({code.explains_as[layer]}.md) in {layer}" for layer in LAYERS if known
    )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:].rstrip(".") + "."


def _index() -> str:
    return (
        "# Codes\n\nA code never changes its meaning and is never removed. `CC1`–`CC4` are causes of a bill "
        "(`cachecost explain`), `CC5` are findings about one request or two in a row (`cachecost lint`).\n\n"
        f"| code | name | what |\n| --- | --- | --- |\n{_causes()}\n\n"
        "What `lint` finds in one request or two is what `explain` prices when it happens in a log, under the code in "
        "the last column; none where the API refuses the request, or nothing is lost.\n\n"
        f"| code | name | what | in a log |\n| --- | --- | --- | --- |\n{_faults()}\n"
    )


def _causes() -> str:
    return "\n".join(_row(code) for code in sorted(causes().values(), key=lambda row: row.code))


def _faults() -> str:
    return "\n".join(f"{_row(code)} {_links(code) or '–'} |" for code in faults().values())


def _row(code: Cause | Fault) -> str:
    return f"| [{code.code}]({code.code}.md) | {code.name} | {code.what} |"
