"""Specs: what is shipped is valid, and what is wrong is said in one sentence."""

from __future__ import annotations

import pytest

from experiment_parts import SMALL
from softsplit.data import catalogue
from softsplit.experiments.peers import PEERS
from softsplit.experiments.spec import MODELS, load_spec, parse_spec, shipped_specs
from softsplit.experiments.tables import paper_figures

SHIPPED = [
    "decomposition", "figure_scatter", "heatmaps", "peers", "table2", "table3",
    "table3_ipopt",
]  # fmt: skip


def test_the_shipped_specs():
    assert shipped_specs() == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_specs_name_what_exists(name):
    spec = load_spec(name)
    assert spec.name == name
    assert set(spec.dataset_names) <= set(catalogue())
    assert set(spec.peers) <= set(PEERS)
    assert spec.folds.count == 5 and spec.folds.rule == "shuffled"


def test_tables_have_the_papers_data_sets_and_models():
    figures = paper_figures()
    for name, count in (("table2", 60), ("table3", 48)):
        spec = load_spec(name)
        pairs = {(d, m) for d in spec.dataset_names for m in spec.model_names}
        assert len(pairs) == count and pairs <= set(figures.index)
        assert spec.grid.strengths == tuple(2.0**r for r in range(-8, 6))
        assert spec.starts == 10
    assert len(figures) == 108
    assert load_spec("figure_scatter").store_name == "paper"


def test_models_of_the_reader():
    spec = parse_spec(
        SMALL.replace('"L0glob"', '{name = "root", penalty = "power", scope = "global"}'), "x.toml"
    )
    assert spec.model_names == ("L1", "root")
    assert spec.model("root").penalty == "power"
    assert spec.model("L1") == MODELS["L1"]


def test_a_spec_is_found_by_its_path(tmp_path):
    (tmp_path / "mine.toml").write_text(SMALL)
    assert load_spec(str(tmp_path / "mine.toml")).name == "small"
    with pytest.raises(ValueError, match="there is no spec file"):
        load_spec(str(tmp_path / "none.toml"))
    with pytest.raises(ValueError, match=r"no experiment 'tabel2'.* did you mean 'table2'\?"):
        load_spec("tabel2")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("starts = 2\nonly", "statrs = 2\nonly", "x.toml: key 'statrs' is unknown; did you mean"),
        ("strengths =", "strength =", "grid: key 'strength' is unknown; did you mean 'strengths'?"),
        ("folds = 2", "fold = 2", "inner: key 'fold' is unknown; did you mean 'folds'?"),
        ('"L0glob"', '"L0blob"', "model 'L0blob' is unknown; did you mean 'L0glob'?"),
        ("[0.25, 1.0, 4.0]", "[1.0, 0.5]", "grid: strengths must be different numbers in asc"),
        ("[0.25, 1.0, 4.0]", "[-1.0]", "grid.strengths.0 must be at least 0, got -1.0."),
        ("[0.25, 1.0, 4.0]", "[]", "grid: strengths must be different numbers"),
        ("starts = 2\nonly", "starts = 0\nonly", "starts must be at least 1, got 0."),
        ('"iris", "wine"', '"iris", "iris"', "data set 'iris' is named twice"),
        ('["iris", "wine"]', "[]", "datasets is empty"),
        ('["L1", "L0glob"]', "[]", "there is nothing to run; name models or peers"),
        ("[0, 1]", "[5]", "only_folds names 5, and the last one is 4"),
        ('"wine"]', '{name = "w", file = "w.csv"}]', "datasets.1.target is missing; add it."),
        (
            '"wine"]',
            '{name = "w", flie = "w.csv", target = "y"}]',
            "datasets.1: key 'flie' is unknown; did you mean 'file'?",
        ),
        (
            '"L0glob"]',
            '{name = "n", penalty = "count", scope = "global"}]',
            "model 'n' counts features, which needs training.loss = 'log'",
        ),
        ("title =", "title", "x.toml is not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(old, new, message):
    assert old in SMALL
    with pytest.raises(ValueError) as error:
        parse_spec(SMALL.replace(old, new), "x.toml")
    said = str(error.value)
    assert message in said
    assert said.startswith("x.toml") and "\n" not in said
    assert said.endswith((".", "?")) and not said.endswith(("?.", ".."))
