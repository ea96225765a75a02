"""Weights, costs and rates of classes on the command line; signs of life; names as they are."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softsplit.cli import app, parameters
from softsplit.cli.console import heartbeat
from softsplit.cli.parameters import Known
from softsplit.data import Table, learn
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.report import comparison, walk_path
from softsplit.report.comparison import ComparisonOptions
from softsplit.selection.assessment import Assessment, Judged
from softsplit.support import status_line
from tables import rare_table


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(7)
    ill = rng.random(400) < 0.12
    table = pd.DataFrame({"my_value": rng.normal(size=400) + 1.2 * ill, "b": rng.normal(size=400)})
    table["state"] = np.where(ill, "ill", "well")
    table.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def found_ill(table, tmp_path, *options) -> float:
    """Share of the ill rows that a tree with these options says are ill."""
    model, out = tmp_path / "m.json", tmp_path / "p.csv"
    given = ["--depth", "1", "--strength", "0.5", "--quiet", "--model", str(model)]
    done = CliRunner().invoke(app, ["fit", str(table), "-t", "state", *given, *options])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["predict", str(model), str(table), "-o", str(out), "--quiet"])
    assert done.exit_code == 0, done.output
    said, true = pd.read_csv(out).iloc[:, -1], pd.read_csv(table)["state"]
    return float(np.mean(said[true == "ill"] == "ill"))


def test_weights_and_costs_find_more_of_a_rare_class(table, tmp_path):
    plain = found_ill(table, tmp_path)
    for options in (
        ["--class-weight", "balanced"],
        ["--class-weight", "ill=8"],
        ["--cost", "ill=8"],
    ):
        assert found_ill(table, tmp_path, *options) > plain + 0.2, options


def test_a_metric_is_handed_to_the_choice(table):
    given = ["fit", str(table), "-t", "state", "--depth", "1", "--quiet", "--json"]
    done = CliRunner().invoke(app, [*given, "--metric", "roc_auc"])
    assert done.exit_code == 0, done.output
    assert 0.5 < json.loads(done.output)["chosen_score"] < 1
    refused = CliRunner().invoke(app, [*given, "--metric", "wisdom"])
    assert refused.exit_code == 2 and "wisdom" in refused.output


def test_rules_in_the_order_of_the_classes():
    classes = Known((), ["a", "b=c", "d"])
    assert parameters.cost_matrix(["b=c=4"], classes) == [[0, 1, 1], [4, 0, 4], [1, 1, 0]]
    assert parameters.minimum_rates(["0.7"], classes) == 0.7
    assert parameters.minimum_rates(["d=0.7"], classes) == {"a": 0, "b=c": 0, "d": 0.7}
    assert parameters.class_weights(["balanced"], classes) == "balanced"


def test_a_command_shows_what_it_does(capsys):
    with heartbeat(False, "reading", 3600.0) as tell:
        line = status_line.line_in_use()
        line.tell()
        tell("counting")
        line.tell()
    with heartbeat(True, "reading"):
        assert status_line.line_in_use() is None
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("softsplit: reading, ") and "at most " in first
    assert second.startswith("softsplit: counting, ")


def test_info_shows_names_as_they_are(table):
    done = CliRunner().invoke(app, ["info", str(table)])
    assert "column my_value" in done.output


def test_no_tree_that_another_beats_is_offered(monkeypatch):
    rows = learn(Table("rare", rare_table(150).astype(str)), "state")
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0, global_strength=0.5)
    tree.fit(*rows.part())
    options = ComparisonOptions(points=6, folds=2)
    monkeypatch.setattr(comparison, "OPTIONS", options)
    path = walk_path(tree, rows)
    sizes = [len(t.selected_features_) for t in path.trees]
    found: Assessment = path.assessment

    def balanced(judged: Judged) -> float:
        hits = judged.calls == found.labels
        return float(np.mean([hits[found.labels == k].mean() for k in range(2)]))

    figures = [balanced(judged) for judged in found.trees]
    for i in range(len(sizes)):
        for j in range(len(sizes)):
            if i not in (j, path.chosen):
                assert sizes[j] > sizes[i] or figures[j] < figures[i]
