"""What must hold, on the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from requirement_cases import table
from softsplit.cli.app import app


@pytest.fixture
def csv(tmp_path):
    frame, y = table()
    path = tmp_path / "rows.csv"
    frame.assign(ill=y).to_csv(path, index=False)
    return str(path)


def run(*words):
    return CliRunner().invoke(app, [*words])


GIVEN = ["--depth", "1", "--strength", "1", "--effort", "fast", "--quiet"]
RULES = ["--required", "f,town", "--forbidden-together", "a,b", "--at-most-one", "b,c,d",
         "--feature-cost", "a=3", "--feature-cost", "town=0.5"]  # fmt: skip


def test_rules_and_costs_hold_and_are_told(csv):
    said = run("fit", csv, "-t", "ill", *GIVEN, *RULES)
    assert said.exit_code == 0, said.output
    assert "a case costs" in said.stdout and "is needed for" in said.stdout
    found = json.loads(run("fit", csv, "-t", "ill", *GIVEN, *RULES, "--json").stdout)
    used = set(found["selected_features"])
    assert {"f", "town"} <= used and not {"a", "b"} <= used and len(used & {"b", "c", "d"}) <= 1
    costs = {"a": 3.0, "town": 0.5}
    assert found["expected_cost"] == pytest.approx(sum(costs.get(name, 1.0) for name in used))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--feature-cost", "a"], "--feature-cost 'a' must be COLUMN=NUMBER"),
        (["--feature-cost", "a=dear"], "--feature-cost needs a number"),
        (["--feature-cost", "a=1", "--feature-cost", "a=2"], "--feature-cost names 'a' twice"),
        (["--required", "nope"], "--required names 'nope', which is not a column of the table"),
        (["--required", "twon"], "a column of the table; did you mean 'town'?"),
        (["--at-most-one", "a,twon"], "--at-most-one names 'twon', which is not a column"),
        (["--forbidden-together", "a,twon"], "--forbidden-together names 'twon'"),
        (["--feature-cost", "twon=2"], "--feature-cost names 'twon', which is not a column"),
        (["--at-most-one", "a"], "--at-most-one holds a set of one column"),
    ],
)
def test_what_cannot_hold_is_one_sentence(csv, words, said):
    end = run("fit", csv, "-t", "ill", *GIVEN, *words)
    assert end.exit_code == 2
    assert said in end.output
