"""What the command of a scenario may: which variables it gets, what it reaches, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from case_files import Run

from cachecost.live.agent_runs import processes, recorder
from cachecost.live.agent_runs.processes import (
    LEVELS,
    PASSED,
    CommandEnd,
    CommandLine,
    Launcher,
    hidden_paths,
    named_variables,
    secrets_in_environment,
)
from cachecost.live.agent_runs.recorder import work_folder
from cachecost.live.agent_runs.supervisor import OUTPUT_BYTES
from command_runs import run_here

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no processes of POSIX")
IS_LINUX = sys.platform == "linux"
SECRET = "planted-secret-0123456789"


def run_command(
    *words: str,
    level: str = LEVELS[0],
    seconds: float = 20.0,
    covered: tuple[str, ...] = (),
    kept: tuple[str, ...] = (),
    **variables: str,
) -> CommandEnd:
    """How a command ends at a level, which is skipped where the system does not allow it."""
    launcher = Launcher()
    if LEVELS.index(launcher.level) > LEVELS.index(level):
        pytest.skip(f"level {level}: {launcher.refusal}")
    launcher.level = level
    line = CommandLine(words, Path.cwd(), b"", covered, kept)
    with launcher.begin(line, lambda address: {"PATH": os.environ["PATH"], "A": address, **variables}) as running:
        if launcher.level != level:
            pytest.skip(f"level {level}: {launcher.refusal}")
        return running.wait(seconds)


def python(code: str, level: str = LEVELS[0], seconds: float = 20.0, **variables: str) -> str:
    """What Python code prints on stderr; it must end well."""
    ended = run_command(sys.executable, "-c", code, level=level, seconds=seconds, **variables)
    assert ended.status == 0, ended.errors
    return ended.errors.strip()


def is_running(mark: str) -> bool:
    """Whether a process has these words in its command line."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark.encode() in place.read_bytes().replace(b"\0", b" "):
                return True
    return False


def until(what: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "too late"
        time.sleep(0.1)  # each look reads all of /proc


# ----------------------------------------------------------------------------------------------- variables


def test_the_command_gets_the_variables_of_a_list_and_no_other(run_case: Run, tmp_path: Path) -> None:
    hidden = ["DATABASE_URL", "SLACK_WEBHOOK_URL", "GH_PAT", "PGPASSWORD", "SENTRY_DSN", "MY_TOKEN", "GITHUB_ENV"]
    hidden += ["SSH_AUTH_SOCK", "database_url", "NODE_OPTIONS", "LD_PRELOAD_X", "LC_SECRET_1"]
    done = run_case("60-agent-sees-secrets", "check", "env.yaml", LC_ALL="C", TZ="UTC", **dict.fromkeys(hidden, "x"))
    assert done.returncode == 3
    seen = set((tmp_path / "60-agent-sees-secrets" / "seen").read_text().split())
    assert not seen & set(hidden)
    assert {"PATH", "HOME", "LC_ALL", "TZ", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"} <= seen
    ours = {"CACHECOST_TURNS", "PYTHONHASHSEED", "NO_PROXY", "no_proxy", "PWD", "SHLVL", "_", "OLDPWD"}
    names = {name for name in seen - ours if not name.startswith(("ANTHROPIC_", "OPENAI_", "GOOGLE_", "GEMINI_"))}
    assert all(PASSED.fullmatch(name) for name in names)


@pytest.mark.parametrize("name", ["DATABASE_URL", "my_token", "SSH_AUTH_SOCK", "http_proxy"])
def test_a_variable_is_passed_on_by_name_and_its_value_never_shown(tmp_path: Path, name: str) -> None:
    code = f"import os, sys; v = os.environ[{name!r}]; sys.exit(v[:7] + ' ' + v)"
    scenario = {
        "format": 1,
        "name": "named",
        "conversation": {"command": [sys.executable, "-c", code], "env": {name: None, "NOT_SET": None}},
        "budget": {"max_regression": "2%"},
    }
    (tmp_path / "named.yaml").write_text(json.dumps(scenario))
    done = run_here("check", "named.yaml", cwd=tmp_path, **{name: SECRET})
    assert done.returncode == 3
    assert "planted [key]" in done.stderr
    assert SECRET not in done.stderr.replace("[key]", "")


def test_secrets_of_a_scenario_are_hidden_in_what_is_shown() -> None:
    outside = {"URL": "https://me:secret-word@example.com/", "A_KEY": "123456789", "LANG": "C.UTF-8-long", "X": "y" * 9}
    named = {"URL": None, "DB_PASSWORD": "in-the-file", "LANG": None, "PLAIN": "shown-as-it-is", "GONE": None}
    assert named_variables(outside, named).keys() == {"URL", "DB_PASSWORD", "LANG", "PLAIN"}
    assert set(secrets_in_environment(outside, named)) == {outside["URL"], "secret-word", "123456789", "in-the-file"}


def test_what_is_hidden_are_the_sockets_and_files_that_variables_name(tmp_path: Path) -> None:
    (tmp_path / "env").touch()
    with unix_server(tmp_path / "s") as place:
        outside = {
            "SSH_AUTH_SOCK": str(place),
            "DOCKER_HOST": f"unix://{place}",
            "GITHUB_ENV": str(tmp_path / "env"),
            "GITHUB_WORKSPACE": str(tmp_path),
            "GITHUB_SHA": "0123",
            "OTHER": str(tmp_path / "env"),
        }
        assert hidden_paths(outside) == [str(tmp_path / "env"), str(place), str(place)]


# ----------------------------------------------------------------------------------------------- what it reaches


@contextmanager
def unix_server(place: Path) -> Iterator[Path]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        yield place


CONNECT = """
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    try:
        s.connect({place!r})
    except OSError as error:
        sys.stderr.write(error.strerror)
    else:
        sys.stderr.write("reached")
"""


@pytest.mark.parametrize("level", LEVELS)
def test_sockets_of_this_machine(level: str, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    with unix_server(tmp_path / "home" / "s"):
        said = python(CONNECT.format(place=str(tmp_path / "real" / "s")), level)
    assert said == ("reached" if level == "none" else "Connection refused")


def test_a_socket_that_the_scenario_names_stays(tmp_path: Path) -> None:
    with unix_server(tmp_path / "s") as place:
        code = CONNECT.format(place=str(place))
        ended = run_command(sys.executable, "-c", code, covered=(str(place),), kept=(str(place),))
    assert ended.errors == "reached"


@pytest.mark.parametrize("level", LEVELS[:2])
def test_a_file_of_the_workflow_is_not_written(level: str, tmp_path: Path) -> None:
    place = tmp_path / "set_env"
    place.write_text("A=1\n")
    ended = run_command("/bin/sh", "-c", f"cat {place} >&2; echo B=2 >> {place}", level=level, covered=(str(place),))
    assert (ended.status, ended.errors, place.read_text()) == (0, "", "A=1\n")


@pytest.mark.parametrize("level", LEVELS[:2])
def test_root_of_the_namespace_uncovers_nothing(level: str, tmp_path: Path) -> None:
    """Also not in a namespace of its own."""
    if not shutil.which("unshare"):
        pytest.skip("no unshare(1)")
    place = tmp_path / "set_env"
    place.touch()
    command = f"umount {place}; unshare -Urm umount {place}; echo B=2 >> {place}"
    run_command("/bin/sh", "-c", command, level=level, covered=(str(place),))
    assert place.read_text() == ""


@pytest.mark.parametrize("level", LEVELS)
def test_processes_of_this_machine(level: str) -> None:
    """A process that is not cut off can read the variables of `check`."""
    said = python(f"import os, sys; sys.stderr.write(str(os.path.exists('/proc/{os.getpid()}/environ')))", level)
    assert said == str(level != "processes")


def test_process_ids_differ_from_run_to_run() -> None:
    code = "import os, sys; sys.stderr.write(str(os.getpid()))"
    assert len({python(code) for _ in range(3)}) > 1


@pytest.mark.parametrize("level", LEVELS)
def test_the_command_inherits_no_descriptor(level: str, tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as stream:
        os.set_inheritable(stream.fileno(), True)
        said = python("import os, sys; sys.stderr.write(' '.join(sorted(os.listdir('/dev/fd'))))", level)
    assert said == "0 1 2 3", "3 is the folder that is listed"


@pytest.mark.parametrize("level", LEVELS)
def test_a_socket_of_its_own_works(level: str, tmp_path: Path) -> None:
    code = f"""
import socket, sys
with socket.socket(socket.AF_UNIX) as s, socket.socket(socket.AF_UNIX) as c:
    s.bind({str(tmp_path / "own")!r}); s.listen(); c.connect({str(tmp_path / "own")!r}); sys.stderr.write("fine")
"""
    assert python(code, level) == "fine"


# ----------------------------------------------------------------------------------------------- what is left

LEFT_BEHIND = {
    "setsid": "setsid sleep 31.{mark} & exit 0",
    "nohup": "nohup sleep 31.{mark} >/dev/null 2>&1 & exit 0",
    "double fork": "(sh -c 'setsid sleep 31.{mark} & exit' &) ; exit 0",
    "no descriptors": "setsid sleep 31.{mark} <&- >&- 2>&- & exit 0",
    "ignores SIGTERM": "trap '' TERM HUP INT; setsid sleep 31.{mark} & exit 0",
    "goes on": "setsid sleep 31.{mark} & sleep 31.{mark}",
}
"""Shell commands that leave a process behind."""


@pytest.mark.skipif(not IS_LINUX, reason="a process that left its group is not found here")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", LEFT_BEHIND)
def test_everything_ends_with_the_command(kind: str, level: str) -> None:
    mark = f"{os.getpid()}{abs(hash((kind, level)))}"
    ended = run_command("/bin/sh", "-c", LEFT_BEHIND[kind].format(mark=mark), level=level, seconds=0.4)
    assert ended.status == (None if kind == "goes on" else 0)
    assert not is_running(f"sleep 31.{mark}")


def test_no_process_of_a_scenario_is_left(run_case: Run) -> None:
    assert run_case("59-agent-leaves-processes", "check", "orphan.yaml").returncode == 3
    if IS_LINUX:
        assert not is_running("sleep 31 ")


KILLS = [
    pytest.param(sign, level, marks=() if number == LEVELS.index(level) else pytest.mark.slow)
    for number, sign in enumerate((signal.SIGKILL, signal.SIGHUP, signal.SIGTERM))
    for level in LEVELS
]
"""Every signal and every level once in the suite, all of both behind `-m slow`."""


@pytest.mark.skipif(not IS_LINUX, reason="finds processes in /proc")
@pytest.mark.parametrize(("sign", "level"), KILLS)
def test_everything_ends_with_a_killed_check(level: str, sign: signal.Signals, tmp_path: Path) -> None:
    """Its temporary folder is removed by the next one."""
    mark = f"{os.getpid()}{abs(hash((level, sign)))}"
    (tmp_path / "s.yaml").write_text(
        f'format: 1\nname: s\nconversation: {{command: [/bin/sh, -c, "setsid sleep 77.{mark} & sleep 77.{mark}"]}}\n'
        "budget: {max_regression: 2%}\n"
    )
    code = (
        "from cachecost.live.agent_runs.processes import LEVELS; from cachecost.live.agent_runs import processes; "
        f"processes.LEVELS = LEVELS[LEVELS.index({level!r}):]; from cachecost.cli import main; main()"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    check = subprocess.Popen([sys.executable, "-c", code, "check", "s.yaml"], cwd=tmp_path, env=environment)
    until(lambda: is_running(f"sleep 77.{mark}"))
    check.send_signal(sign)
    check.wait(20)
    until(lambda: not is_running(f"77.{mark}"), 10)


def test_folders_of_killed_processes_are_removed_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(recorder.tempfile, "tempdir", str(tmp_path))
    left, new, old, other = (tmp_path / name for name in ("cachecost-run-a", "cachecost-run-b", "cachecost-run-c", "x"))
    for folder in (left, new, old, other):
        folder.mkdir()
    (left / "lock").touch()
    (tmp_path / "cachecost-run-link").symlink_to(other)
    os.utime(old, (1, 1))
    with work_folder() as first, work_folder() as second:
        assert first.is_dir() and second.is_dir() and first != second
        assert not left.exists() and not old.exists()
        assert new.exists() and other.exists()
    assert not first.exists() and not second.exists()


@pytest.mark.parametrize("level", LEVELS)
def test_a_flood_of_output_is_on_no_disk(level: str, tmp_path: Path) -> None:
    """40 MB on both streams; the end of stderr is kept."""
    command = "head -c 40000000 /dev/zero; head -c 40000000 /dev/zero >&2; echo the end >&2; exit 4"
    before = shutil.disk_usage("/tmp").used
    ended = run_command("/bin/sh", "-c", command, level=level, seconds=60.0)
    assert ended.status == 4
    assert ended.errors.endswith("the end\n") and len(ended.errors) <= OUTPUT_BYTES
    assert shutil.disk_usage("/tmp").used - before < 35_000_000


def test_a_command_that_is_over_at_once_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end may come with the first message of the supervisor."""
    code = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).sendall(b'made7\\nthe end')"
    monkeypatch.setattr(processes, "SUPERVISOR", [sys.executable, "-c", code])
    assert run_command("unused", level="none") == CommandEnd(7, "the end")


@pytest.mark.parametrize("level", LEVELS)
def test_statuses(level: str) -> None:
    assert run_command("/bin/sh", "-c", "kill -KILL $$", level=level).status == 128 + 9
    assert run_command("/no/such/program", level=level).status == 127
    assert run_command("/bin/sh", "-c", "kill 0; sleep 9", level=level).status == 128 + 15, "its group is its own"
