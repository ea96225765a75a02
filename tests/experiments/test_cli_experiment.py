"""``softsplit experiment`` from the first command to the last."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from experiment_parts import SMALL
from softsplit.cli import app


def invoke(*arguments: str):
    return CliRunner().invoke(app, ["experiment", *arguments], env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A spec of 12 cells in the current folder."""
    monkeypatch.delenv("SOFTSPLIT_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    text = SMALL.replace('"iris", "wine"', '"iris"').replace(
        "only_folds = [0, 1]", "only_folds = [0]"
    )
    text = text.replace("[grid]", 'figures = ["boxes"]\n\n[grid]')
    (tmp_path / "small.toml").write_text(text)
    return tmp_path


def test_run_status_table_plot(folder):
    result = invoke("run", "small.toml", "--jobs", "1", "--skip-inner")
    assert result.exit_code == 0, result.stderr
    assert "12 of 12 cells done" in result.stdout
    assert (folder / "results" / "small.sqlite").is_file()
    result = invoke("status", "small.toml")
    assert "12 of 24 cells done" in result.stdout and "OPTIMAL" in result.stdout
    result = invoke("table", "small.toml", "--out", "out")
    assert result.exit_code == 0, result.stderr
    assert "out/small.md" in result.stdout
    assert "| iris | L0glob |" in (folder / "out" / "small.md").read_text()
    result = invoke("plot", "small.toml", "--out", "out")
    assert result.stdout.split() == ["out/small_boxes.svg"]
    again = invoke("run", "small.toml", "--jobs", "1")
    assert "24 of 24 cells done" in again.stdout


def test_an_interrupted_run_says_how_to_go_on(folder):
    spec = folder / "small.toml"
    spec.write_text(
        spec.read_text().replace(
            "starts = 2", 'starts = 2\nsolvers = ["experiment_parts:InterruptedSolver"]'
        )
    )
    result = invoke("run", "small.toml", "--jobs", "1")
    assert result.exit_code == 130
    assert "of 24 cells done" in result.stdout
    assert "the same command goes on from here" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "tabel2"], "there is no experiment 'tabel2'"),
        (["status", "small.toml"], "there is no store 'results/small.sqlite'; run the experiment"),
        (["table", "small.toml"], "there is no store"),
        (["plot", "none.toml"], "there is no spec file 'none.toml'"),
        (["run", "small.toml", "--dask", "tcp://127.0.0.1:9"], "no Dask scheduler answers at"),
        (["run", "small.toml", "--jobs", "0"], "--jobs must be at least 1"),
    ],
)
def test_errors_are_one_sentence(arguments, message, monkeypatch):
    if "--dask" in arguments:
        pytest.importorskip("distributed")
        monkeypatch.setattr("softsplit.experiments.cluster.PATIENCE", 0.5)
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("softsplit: ") and "Traceback" not in result.stderr
