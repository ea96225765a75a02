"""Counts with exposure and survival from the command line."""

import json

import pandas as pd
import pytest

from cli_runs import invoke, refused, works
from rate_tables import claims, patients
from softsplit import load_model


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rates")
    X, y, years = claims(400)
    pd.concat([X, y, years], axis=1).to_csv(folder / "claims.csv", index=False)
    X, y, _ = patients(400)
    pd.concat([X, y], axis=1).to_csv(folder / "patients.csv", index=False)
    return folder


QUICK = ("--depth", "1", "-q")


def test_counts_with_exposure_are_fitted_and_predicted(tables):
    path, model = tables / "claims.csv", tables / "claims.json"
    fit = ("fit", path, "-t", "claims", "--family", "poisson", "--exposure", "years", *QUICK)
    page = tables / "claims.html"
    text = works(invoke(*fit, "--model", model, "--report", page))
    assert "Observed and expected by leaf" in page.read_text("utf-8")
    figures = json.loads(works(invoke("report", model, path, "--out", page, "-q", "--json")))
    assert figures["deviance_explained"] > 0.3
    without = path.with_name("bare.csv")
    pd.read_csv(path).drop(columns="years").to_csv(without, index=False)
    refused(invoke("report", model, without, "--out", page, "-q"), "no column 'years'")
    assert "claims a year = " in text and "deviance explained" in text and "years" in text
    facts = json.loads(works(invoke(*fit, "--json")))
    assert facts["training_deviance_explained"] > 0.3 and "years" not in facts["selected_features"]
    frame = pd.read_csv(path)
    told = works(invoke("predict", model, path, "-q")).splitlines()
    _, rate, expected = told[1].split(",")
    assert float(rate) == pytest.approx(
        load_model(model).predict(frame[:1].drop(columns=["claims", "years"]))[0]
    )
    assert float(expected) == pytest.approx(float(rate) * frame["years"][0])


def test_survival_is_fitted_and_predicted(tables):
    path, model = tables / "patients.csv", tables / "patients.json"
    fit = ("fit", path, "--task", "survival", "--time", "months", "--event", "died", *QUICK)
    page = tables / "patients.html"
    text = works(invoke(*fit, "--model", model, "--report", page))
    assert "Rows at risk by leaf" in page.read_text("utf-8")
    figures = json.loads(works(invoke("report", model, path, "--out", page, "-q", "--json")))
    assert 0.6 < figures["concordance"] < 1.0
    assert "hazard of died = " in text and "concordance 0." in text and "event-free at" in text
    head, first = works(invoke("predict", model, path, "-q")).splitlines()[:2]
    assert head == "row,prediction,median"
    frame = pd.read_csv(path)
    assert float(first.split(",")[1]) == pytest.approx(
        load_model(model).predict(frame[:1].drop(columns=["months", "died"]))[0]
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--task", "survival"), "--task survival and --time COLUMN are given together"),
        (("--time", "years"), "--task survival and --time COLUMN are given together"),
        (("--exposure", "acres"), "the table has no column 'acres'"),
        (("--exposure", "region"), "column 'region' does not hold numbers"),
        (("--family", "squared", "--exposure", "years"), "exposure is for the losses"),
        (("--task", "classes", "--exposure", "years"), "are for numbers"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(tables, given, sentence):
    refused(invoke("fit", tables / "claims.csv", "-t", "claims", *given, "-q"), sentence)
