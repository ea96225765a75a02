"""One strength: the number that is printed, put back, gives the same tree."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest
from markupsafe import escape
from sklearn.datasets import load_wine

from cli_runs import invoke
from slow_cases import slow
from softsplit import dumps_model, load_model


def same(tree, other):
    assert json.loads(dumps_model(tree))["tree"] == json.loads(dumps_model(other))["tree"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("wine") / "wine.csv"
    frame = load_wine(as_frame=True).frame.iloc[:, 4:]
    frame["kind"] = np.where(frame.pop("target") == 1, "light", "other")
    frame.to_csv(path, index=False)
    return path, frame


# A choice may keep a tree of its path that its settings alone do not give: then no line is printed.
OF_TABLE = ("--drop", "proline", "--class-weight", "light=2", "--max-features", 3)


@pytest.mark.parametrize(
    "options", [OF_TABLE, *slow((), ("--scope", "local"), ("--loss", "cost", "--depth", 1))]
)
def test_the_printed_settings_give_the_chosen_tree_again(table, tmp_path, options):
    path, _ = table
    first, second, page = tmp_path / "1.json", tmp_path / "2.json", tmp_path / "r.html"
    shown = ("--jobs", 1, "--text", "full")
    fit = ("fit", path, "-t", "kind", *options, *shown, "--time-limit", 0)
    made = invoke(*fit, "-m", first, "-r", page)
    given = re.search(r"the same tree +softsplit fit with (.*)", made.stdout)[1]
    again = invoke("fit", path, "-t", "kind", "-m", second, *shown, *shlex.split(given))
    tree, other = load_model(first), load_model(second)
    same(tree, other)
    strength = re.search(r"--strength (\S+)", given)[1]
    assert f"strength {strength}" in made.stdout and f"strength {strength}" in again.stdout
    assert f"the chosen tree: strength {strength}," in page.read_text()
    line = f"<code>softsplit fit DATA -t kind {escape(given)}</code>"
    assert line in page.read_text()
    assert float(strength) == (tree.global_strength or tree.local_strength)
