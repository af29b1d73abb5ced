"""Values of a settings file as click's options take them, checked by the types that check a command line.

Serving a page on this machine, and opening it in a browser.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cachecost.base.atomic_files import is_yaml
from cachecost.base.errors import Fault, InputError, nearest
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.configuration.project_settings import (
    ALL,
    OVERRULING,
    REPORTS,
    RULE,
    TOKENS,
    ProjectSettings,
    Setting,
    WrongValue,
    assignments_of,
    count_of,
    flag_of,
    word_of,
    words_of,
)
from cachecost.tokens.factory import CALIBRATED, COUNTERS

if TYPE_CHECKING:
    from cachecost.live.viewer.source import PageSource


ALL_TOKENS = (CALIBRATED, *COUNTERS)
CHECK = "check"


class CommandDefaults(NamedTuple):
    """Values by the names of click's parameters, their places by option, and errors."""

    values: dict[str, Any]
    places: dict[str, str]
    faults: list[Fault]


def command_defaults(name: str, command: click.Command, settings: ProjectSettings) -> CommandDefaults:
    """What the file states for the options of a command."""
    options = {flag: param for param in command.params for flag in param.opts}
    context = click.Context(command, info_name=name)
    made = CommandDefaults({}, {}, [])
    for key, setting in settings.of(name):
        option = options[f"--{key}"]
        if is_overruled(setting) or _is_of_other_commands(setting, option):
            continue
        try:
            value = _option_value(option, setting, settings)
            option.process_value(context, value)
            made.values[option.name or key] = value
        except (WrongValue, click.BadParameter) as error:
            message = error.message if isinstance(error, click.BadParameter) else str(error)
            made.faults.append(settings.fault(setting, message))
        made.places[f"--{key}"] = settings.place(setting)
    if name == CHECK:
        _add_for_check(made, settings)
    return made


def _add_for_check(made: CommandDefaults, settings: ProjectSettings) -> None:
    """The volumes, and errors of what `check` asks the file for later."""
    from cachecost.configuration.project_settings import reports_folder, scenario_defaults_of, scenario_files

    for setting in settings.volumes():
        try:
            made.values.setdefault("volumes", []).append(f"{setting.key}={count_of(setting.value)}")
        except WrongValue as error:
            made.faults.append(settings.fault(setting, str(error)))
        made.places.setdefault("--volume", settings.place(setting))
    for read in (scenario_files, reports_folder, lambda one: scenario_defaults_of(one, os.environ)):
        try:
            read(settings)
        except InputError as error:
            made.faults.extend(error.faults)


def is_overruled(setting: Setting) -> bool:
    """Whether a variable of the environment wins over the setting."""
    return bool(os.environ.get(OVERRULING.get(setting.key, ""), ""))


def _is_of_other_commands(setting: Setting, option: click.Parameter) -> bool:
    """Whether a source of token counts for all commands is none for this one, which has fewer of them."""
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    is_general = setting.command == ALL and setting.key == TOKENS
    return is_general and setting.value in ALL_TOKENS and setting.value not in choices


def _option_value(option: click.Parameter, setting: Setting, settings: ProjectSettings) -> Any:
    if isinstance(option, click.Option) and option.is_flag:
        return flag_of(setting.value)
    if setting.key == REPORTS:
        from cachecost.configuration.project_settings import folder_within

        return str(folder_within(settings, word_of(setting.value)))
    words = assignments_of(setting.value) if setting.key == RULE else words_of(setting.value, option.multiple)
    if setting.key == RULE:
        from cachecost.configuration.project_settings import assumption_problems

        if problem := assumption_problems(words):
            raise WrongValue(problem)
    if isinstance(option.type, click.Choice) and words[0] not in option.type.choices:
        choices = [str(choice) for choice in option.type.choices]
        raise WrongValue(f"expected one of {', '.join(choices)}; got {words[0]!r}{nearest(words[0], choices)}")
    placed = [_placed_word(word, option, settings.folder) for word in words]
    return placed if option.multiple else placed[0]


def _placed_word(word: str, option: click.Parameter, folder: Path) -> str:
    is_strategy_file = "--strategy" in option.opts and is_yaml(Path(word))
    return str(folder / word) if isinstance(option.type, click.Path) or is_strategy_file else word


TOKEN_BYTES = 16
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}"><title>cachecost view</title></head>
<body><a href="{0}">cachecost view</a></body></html>
"""


def new_token() -> str:
    """What the addresses of a page begin with, so that nobody finds them by chance."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def serve_source(source: PageSource, opened: str, port: int, opens_browser: bool) -> None:
    """Serve a page until stopped; it opens at the address `opened` ("": where it begins). Raises UsageError for a port
    that is taken.
    """
    from cachecost.live.loopback import PortTaken, address_of, listen
    from cachecost.live.viewer.app import serve_page, viewer_app
    from cachecost.live.viewer.saved_page import read_static_files

    token = new_token()
    try:
        taken = listen(port)
    except PortTaken as error:
        raise click.UsageError(str(error)) from None
    with taken:
        address = f"{address_of(taken)}/{token}/{opened}"
        app = viewer_app(source, read_static_files(), token, taken.getsockname()[1], print_diagnostic)
        if opens_browser and (sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in DISPLAYS)):
            with redirect_file(address) as path:
                serve_page(app, taken, lambda: _greet(address, path))
        else:
            serve_page(app, taken, lambda: _greet(address, None))


def _greet(address: str, opened: Path | None) -> None:
    """Say where the page is, and open it by a file that leads there."""
    print_diagnostic(f"{address}  (Ctrl-C stops it)")
    if opened is not None:
        Thread(target=_open_browser, args=(opened,), daemon=True).start()


@contextmanager
def redirect_file(address: str) -> Iterator[Path]:
    """A file that leads a browser to `address`, and that only this user can read: command lines, which everyone on the
    machine can list, then have no token.
    """
    with TemporaryDirectory(prefix="cachecost-view-") as folder:
        path = Path(folder) / "open.html"
        path.write_text(REDIRECT.format(escape(address, quote=True)), encoding="utf-8")
        path.chmod(0o600)
        yield path


def _open_browser(path: Path) -> None:
    import webbrowser

    webbrowser.open(path.as_uri())
