"""Errors of the command line speak of its options, whatever Typer and the library say."""

from __future__ import annotations

from itertools import pairwise

import pytest
from typer.testing import CliRunner

from softsplit.cli.app import app
from softsplit.cli.console import sentence


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("compare a b c --allow 3", "--allow must be at most 1, got '3'."),
        ("compare a b c --allow x", "--allow must be a number, got 'x'."),
        ("export a", "--to is missing; choose sql, python, javascript, c or excel."),
        ("export a --to c++", "--to must be sql, python, javascript, c or excel, got 'c++'."),
        ("fit a", "--target is missing; softsplit fit --help says what to give."),
        ("fit a -t y -j 0", "--jobs must be at least 1, got '0'."),
        (
            "fit a -t y --effort much",
            "--effort must be one of 'fast', 'balanced', 'thorough' or a number > 0, got 'much'.",
        ),
        ("fit a --targt y", "there is no option --targt; did you mean --target?"),
        ("predict", "MODEL is missing; softsplit predict --help says what to give."),
        ("predict a b c", "'c' is more than was expected; softsplit predict --help shows the"),
        ("fitt", "there is no command 'fitt'; did you mean fit?"),
    ],
)
def test_wrong_calls_are_told_in_one_sentence(arguments, told):
    result = CliRunner().invoke(app, arguments.split(), prog_name="softsplit")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"softsplit: {told}") and result.stderr.count("\n") == 1


def test_a_group_without_a_command_prints_its_help_alone():
    result = CliRunner().invoke(app, ["experiment"])
    assert "Usage" in result.output and "softsplit: " not in result.stderr


class _UsageError(Exception):
    """An error as older versions of Typer word it."""

    def __init__(self, told: str) -> None:
        self.told = told

    def format_message(self) -> str:
        return self.told


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "Invalid value for '--allow': 3.0 is not in the range 0.0<=x<=1.0.",
            "--allow must be at most 1, got '3'.",
        ),
        (
            "Invalid value for '--jobs' / '-j': 0 is not in the range x>=1.",
            "--jobs must be at least 1, got '0'.",
        ),
        (
            "Invalid value for '--allow': 'x' is not a valid float.",
            "--allow must be a number, got 'x'.",
        ),
        (
            "Invalid value for '--to': 'perl' is not one of 'sql', 'c'.",
            "--to must be sql or c, got 'perl'.",
        ),
    ],
)
def test_older_versions_of_typer_are_understood(before, after):
    assert sentence(_UsageError(before)) == after


@pytest.mark.parametrize("command", ["report", "info", "check", "export"])
def test_help_is_broken_by_the_terminal_alone(command):
    told = (
        CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80", "TERM": "dumb"}).output
    )
    assert "[[" not in told
    text = told.split("Usage", 1)[1].split("Arguments")[0]
    lines = [line.strip() for line in text.splitlines()]
    within = [(a, b) for a, b in pairwise(lines[2:]) if a and b and b[0].isalpha()]
    pairs = [(a, b) for a, b in within if a[-1] != "."]  # a paragraph, in former versions of Typer
    assert all(len(a) + 1 + len(b.split()[0]) > 76 for a, b in pairs)  # the next word has no room
