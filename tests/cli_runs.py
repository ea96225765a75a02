"""Commands of ``softsplit`` in this process, and what their results must be."""

from __future__ import annotations

from typer.testing import CliRunner

from softsplit.cli import app


def invoke(*arguments: object, input: bytes | None = None, **environment: str):
    """Run a command; widths of terminals break no line of results."""
    words = [str(argument) for argument in arguments]
    env = {"COLUMNS": "400", **environment}
    return CliRunner().invoke(app, words, env=env, input=input, prog_name="softsplit")


def works(result) -> str:
    """The output of a command that has worked."""
    assert result.exit_code == 0, result.output
    assert "Traceback" not in result.output
    return result.stdout


def refused(result, message: str) -> None:
    """One sentence on standard error, nothing on standard output, exit code 2."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line]
    assert len(lines) == 1 and lines[0].startswith("softsplit: "), result.stderr
    assert message in lines[0], lines[0]
