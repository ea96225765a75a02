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
