"""A file that is no scenario is not quoted in errors: it may hold secrets (a mistyped path, a link)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.command_runs import run_here

from slow_cases import mostly_slow

SECRET = "hunter2-secret"
FILES = {
    ".env": f'ROOT_PASSWORD={SECRET}\nAPI_KEY="{SECRET}"\n',
    "passwd": f"root:{SECRET}:0:0:root:/root:/bin/bash\n",
    "netrc": f"machine x login y password {SECRET}\n",
    "word": SECRET,
    "url": f"https://u:{SECRET}@host/\n",
    "key.pem": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n",
    "secrets.yaml": f"db_password: {SECRET}\napi: {{key: {SECRET}}}\n",
    "named.yaml": f"name: x\nhost: {SECRET}\nmodel: {SECRET}\n",
    "key.yaml": f"{SECRET}: 1\n{SECRET}: 2\n",
    "alias.yaml": f"password: *{SECRET}\n",
    "anchor.yaml": f"a: &{SECRET} 1\nb: &{SECRET} 2\n",
    "tag.yaml": f"password: !{SECRET} x\n",
    "handle.yaml": f"password: !{SECRET}!x y\n",
    "directive.yaml": f"%{SECRET} 1\n",
    "open.yaml": f'password: "{SECRET}\n',
    "flow.yaml": f"{{password: {SECRET}, b\n",
    "block.yaml": f"password: |{SECRET}\n",
    "escape.yaml": f'password: "\\q{SECRET}"\n',
    "list.json": f'["{SECRET}"]',
    "object.json": f'{{"token": "{SECRET}"}}',
    "config.ini": f"[default]\naws_secret_access_key = {SECRET}\n",
    "binary": f"\0{SECRET}",
}
COMMANDS = (
    "run {}",
    "check {}",
    "sweep {} --jobs 1",  # a helper process that is only just starting leaves noise behind
    "run {} --json",
    "whatif {}",
    "lint {}",
    "next {}",
    "import {} -o made.jsonl",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", mostly_slow(FILES, 12))
def test_a_foreign_file_is_not_quoted(tmp_path: Path, name: str, command: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    ended = run_here(*command.format(name).split(), cwd=tmp_path)
    assert SECRET not in ended.stdout + ended.stderr
    if command.startswith("run"):
        assert ended.returncode == 2
        assert f"{name}:" in ended.stderr


def test_the_error_names_the_line_and_what_was_expected(tmp_path: Path) -> None:
    for name, words in ((".env", "1:1 expected a mapping; got text"), ("secrets.yaml", "1:1 expected a scenario, ")):
        (tmp_path / name).write_text(FILES[name])
        assert f"{name}:{words}" in run_here("run", name, cwd=tmp_path).stderr


def test_a_scenario_with_errors_still_quotes_its_values(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("format: 1\nname: a\nconversation: {recording: x.jsonl}\nhost: anthropc\n")
    assert "anthropc" in run_here("run", "a.yaml", cwd=tmp_path).stderr
