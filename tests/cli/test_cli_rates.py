"""Wrong options of fairness and of bounds of rates on the command line."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softsplit.cli import app


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(3)
    sex = rng.choice(["F", "M"], 200)
    table = pd.DataFrame({"a": rng.normal(size=200) + (sex == "M"), "b": rng.normal(size=200)})
    table["age"], table["sex"] = rng.integers(18, 70, 200), sex
    table["credit"] = np.where(table.a + table.b + 0.5 * rng.normal(size=200) > 0.5, "good", "bad")
    table.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def invoke(table, *options):
    given = ["fit", str(table), "-t", "credit", "--depth", "1", "--strength", "1", "--quiet"]
    return CliRunner().invoke(app, [*given, *options])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--parity", "sax=0.05"], "names no column"),
        (["--parity", "sex"], "names no column"),
        (["--parity", "age>x=0.05"], "--parity"),
        (["--favourable", "good"], "give one of them"),
        (["--parity", "sex=0.1", "--favourable", "fine"], "'fine'"),
        (["--rate", "good"], "not understood"),
        (["--rate", "good on sex=Q <= 0.4"], "no value 'Q'"),
    ],
)
def test_wrong_options_are_told_in_one_sentence(table, options, said):
    done = invoke(table, *options)
    assert done.exit_code != 0
    assert said in " ".join(done.output.split())
