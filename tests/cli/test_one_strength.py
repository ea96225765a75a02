"""One strength: the number that is printed, put back, gives the same tree."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

from cli_runs import invoke
from slow_cases import slow
from softsplit import export_text, load_model


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("wine") / "wine.csv"
    frame = load_wine(as_frame=True).frame.iloc[:, 4:]
    frame["kind"] = np.where(frame.pop("target") == 1, "light", "other")
    frame.to_csv(path, index=False)
    return path, frame


OF_TABLE = ("--drop", "proline", "--class-weight", "light=2", "--max-features", 3)


@pytest.mark.parametrize(
    "options", [OF_TABLE, *slow((), ("--scope", "local"), ("--loss", "cost", "--depth", 1))]
)
def test_the_settings_of_the_chosen_tree_give_it_again(table, tmp_path, options):
    path, _ = table
    first, second, page = tmp_path / "1.json", tmp_path / "2.json", tmp_path / "r.html"
    fit = ("fit", path, "-t", "kind", *options, "--jobs", 1, "--text", "full")
    made = invoke(*fit, "--time-limit", 0, "-m", first, "-r", page)
    tree = load_model(first)
    strength = tree.global_strength or tree.local_strength
    settings = ("--strength", strength, "--scale", tree.scale, "--seed", tree.random_state)
    if tree.loss == "log":
        settings += ("--ridge", tree.ridge, "--depth", tree.depth)
    costs = (
        []
        if tree.cost_matrix is None
        else zip(tree.classes_, np.max(tree.cost_matrix, axis=1), strict=True)
    )
    settings += tuple(word for k, c in costs for word in ("--cost", f"{k}={c}"))
    again = invoke(*fit, "-m", second, *settings)
    assert export_text(load_model(second)) == export_text(tree)
    shown = f"strength {strength:.4g}"
    assert shown in made.stdout and shown in again.stdout
    assert f"the chosen tree: {shown}," in page.read_text()
