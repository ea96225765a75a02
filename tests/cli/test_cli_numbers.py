"""``softsplit fit`` and ``softsplit predict`` on tables whose target is a number."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from cli_runs import invoke, refused, works
from softsplit import load_model


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    """A table of prices, one of them missing, and the model file of its tree."""
    folder = tmp_path_factory.mktemp("prices")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.integers(30, 200, 300), "town": rng.choice(["a", "b"], 300)})
    noise = rng.normal(0, 5, 300)
    table["price"] = (2.5 * table["size"] + 80 * (table["town"] == "b") + noise).round(2)
    table.loc[7, "price"] = np.nan
    table["stars"] = rng.integers(1, 6, 300)
    path, model = folder / "prices.csv", folder / "tree.json"
    table.to_csv(path, index=False)
    page = folder / "page.html"
    arguments = ("--depth", 1, "-m", model, "-r", page, "--jobs", 1, "--time-limit", 0)
    return path, model, invoke("fit", path, "-t", "price", *arguments)


def test_a_number_with_many_values_is_recognised_and_its_formula_printed(prices):
    path, model, result = prices
    printed = works(result)
    assert "'price' holds 2" in result.stderr and "(--task classes for classes)" in result.stderr
    said, used, page = printed.splitlines()[-3:]
    assert said.startswith("typically off by ") and "always saying the mean: " in said
    assert used == "columns used: 2 of 3" and page.endswith("page.html")
    assert "price = " in printed and "1 without a number" in printed
    told = json.loads(works(invoke("fit", path, "-t", "price", "--time-limit", 0, "--json", "-q")))
    assert told["training_r2"] > 0.98 and told["mean_absolute_error"] < 6
    assert load_model(model).tree_.target == "price"


def test_predictions_are_those_of_python_with_bounds(prices):
    path, model, _ = prices
    frame = pd.read_csv(path)
    lines = works(invoke("predict", model, path, "--confidence", 0.9, "-q"))
    rows = list(csv.DictReader(io.StringIO(lines)))
    predicted, bounds = load_model(model).predict(frame[["size", "town", "stars"]], interval=0.9)
    assert [float(row["prediction"]) for row in rows] == predicted.tolist()
    assert [float(row["low"]) for row in rows] == bounds[:, 0].tolist()
    assert "price = " in works(invoke("info", model))


def test_the_page_is_written_with_the_tree_and_from_its_file(prices, tmp_path):
    path, model, result = prices
    said = works(result).splitlines()[-3]
    page = (path.parent / "page.html").read_text("utf-8")
    assert f"{said[:1].upper()}{said[1:]}; 2 of 3 columns (prices" in page  # the same sentence
    out = tmp_path / "again.html"
    told = json.loads(works(invoke("report", model, path, "-o", out, "--json", "-q")))
    frame = pd.read_csv(path).dropna()
    off = (load_model(model).predict(frame[["size", "town", "stars"]]) - frame["price"]).abs()
    assert told["mean_absolute_error"] == pytest.approx(off.mean())
    assert "on training rows" in out.read_text("utf-8")
    for options, message in (
        (("--by", "town"), "--by is for trees that predict classes"),
        (("-t", "town"), "'town' does not hold numbers"),
        (("-t", "cost"), "the table has no column 'cost'"),
    ):
        refused(invoke("report", model, path, "-o", out, "-q", *options), message)


def test_the_task_settles_it_and_what_is_for_classes_is_refused(prices):
    path, model, _ = prices
    assert "stars = " in works(invoke("fit", path, "-t", "stars", "--task", "number", "-q"))
    refused(invoke("fit", path, "-t", "town", "--task", "number", "-q"), "does not hold numbers")
    refused(
        invoke("fit", path, "-t", "price", "--parity", "town=0.1", "-q"),
        "--parity is for trees that predict classes",
    )
    refused(
        invoke("fit", path, "-t", "town", "--leaf-terms", 2, "-q"), "--leaf-terms is for trees that"
    )
    refused(
        invoke("predict", model, path, "--proba", "-q"), "this is for trees that predict classes"
    )
    assert "price = " in works(invoke("explain", model, path, "--row", 1, "-q"))
