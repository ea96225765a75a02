"""The command line: results on standard output, errors as one sentence with exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import softsplit
from cli_runs import invoke, refused
from softsplit import __main__ as program
from softsplit.capacity import command as vc_module
from softsplit.cli import console


def test_vc_prints_bounds_reasons_and_other_models() -> None:
    result = invoke("vc", "--depth", "3", "--features", "10")
    assert result.exit_code == 0
    assert result.stderr == ""
    words = " ".join(result.stdout.split())
    assert "Soft tree of depth 3 on 10 real features: VC dimension from 44 to 184,550" in words
    assert "lower 44 2^(D-1) (p + 1) 2 levels tell 4 clusters of points apart" in words
    assert "paper 40 2^(D-1) (p - D + 3) LB-VC: 2 subtrees of depth 2" in words
    assert "at any steepness above 26.95" in words
    for model in ("perceptron", "soft tree", "hard oblique tree", "two-layer threshold network"):
        assert model in words
    assert "Error on new rows" not in words


@pytest.mark.parametrize(
    "error, message",
    [
        (FileNotFoundError(2, "No such file or directory", "x.csv"), "No such file or directory"),
        (ImportError("this needs\n softsplit[ipopt]"), "this needs softsplit[ipopt]."),
        (ValueError("all failed.\n" + "Traceback: a line\n" * 50), "softsplit: all failed."),
        (KeyError("lost"), "unexpected KeyError: 'lost'; please report it"),
    ],
)
def test_no_error_shows_a_traceback(monkeypatch, error: Exception, message: str) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(vc_module, "print_json", broken)
    arguments = ["vc", "--depth", "2", "--features", "3", "--json"]
    refused(invoke(*arguments), message)
    shown = invoke(*arguments, **{console.SHOW_TRACEBACK: "1"})
    assert shown.exception is error


def test_help_and_version() -> None:
    assert invoke("--version").stdout == f"softsplit {softsplit.__version__}\n"
    for arguments in ([], ["--help"], ["-h"]):
        result = invoke(*arguments)
        assert result.exit_code == 0
        assert "Usage: softsplit" in result.stdout
        assert "vc" in result.stdout
    assert "--features" in invoke("vc", "--help").stdout


def test_the_module_runs_as_a_program() -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "softsplit", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    good = run("vc", "--depth", "3", "--features", "10", "--json")
    assert good.returncode == 0
    assert good.stderr == ""
    assert json.loads(good.stdout)["lower"]["value"] == 44
    bad = run("vc", "--depth", "99", "--features", "10")
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.startswith("softsplit: --depth must be ")
    assert bad.stderr.count("\n") == 1


def test_starting_the_program_loads_nothing_that_it_does_not_need() -> None:
    script = (
        "import sys, softsplit.cli\n"
        "assert not {'numba', 'pandas', 'sklearn', 'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_ctrl_c_while_the_program_is_loaded_is_said(monkeypatch, capsys) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "softsplit.cli":
                raise KeyboardInterrupt

    for name in [name for name in sys.modules if name.startswith("softsplit.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as left:
        program.main()
    assert left.value.code == 130
    assert capsys.readouterr().err == (
        "softsplit: interrupted before there was anything to keep.\n"
    )


RUN = """
import atexit, os, sys, threading
from softsplit import __main__ as program, cli
class Slow:
    def __del__(self):
        os.write(1, b"taken apart")
kept = Slow()
def waited():  # only Python's own end lets the main thread be joined
    threading.main_thread().join()
    os.write(1, b"waited for")
"""


def run_program(body, **given):
    """The program in a process of its own, with this code in the place of a command."""
    code = f"{RUN}def command():\n    {body}\ncli.main = command\nprogram.main()"
    given["env"] = {**os.environ, "PYTHONUNBUFFERED": ""}
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, **given)


@pytest.mark.parametrize("code", [0, 2, 130])
def test_a_command_ends_at_once_with_its_code_after_all_output(tmp_path, code):
    body = (
        "print('the last line', flush=False)\n"
        "    atexit.register(lambda: open('closed', 'w').close())\n"
        "    threading.Thread(target=waited).start()\n"  # Python would wait for it
        f"    sys.exit({code})"
    )
    done = run_program(body, stdout=subprocess.PIPE, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (code, "the last line\n", "")
    assert (tmp_path / "closed").exists()
