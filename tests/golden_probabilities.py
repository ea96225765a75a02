"""The golden table of class probabilities: trees, rows, probabilities and predicted classes.

Numbers are read back to the last bit. To run this file adds cases that the table lacks; remove a
case from the table only if predictions are meant to change.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from readings import random_model
from softsplit.fitted.leaf_shares import decision_gains
from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import FeatureSummary
from softsplit.fitted.walk import Arriving, Walk
from softsplit.fitted.walk_rounding import fit_walk
from softsplit.persistence.estimators import classifier_of
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import scaling_from

TABLE = Path(__file__).with_suffix(".json")

CASES = {
    "one question": {"seed": 1, "depth": 1, "n_classes": 2, "steepness": 6.0},
    "class shares": {"seed": 2, "depth": 2, "kind": "standard", "steepness": 30.0},
    "ranks": {"seed": 3, "depth": 3, "kind": "quantile", "steepness": 40.0},
    "steep": {"seed": 4, "depth": 3, "n_classes": 4, "steepness": 512.0},
    "argmax-consistent": {"seed": 11, "depth": 3, "steepness": 8.0, "leaves": "classes"},
    "classes by costs of the training": {
        "seed": 6, "depth": 2, "kind": "quantile", "steepness": 20.0, "leaves": "classes",
    },
    "cost matrix": {"seed": 7, "depth": 2, "n_classes": 5, "steepness": 30.0, "leaves": "costs"},
    "cost matrix of two classes": {
        "seed": 8, "depth": 2, "n_classes": 2, "kind": "standard", "leaves": "costs",
    },
    "walk": {"seed": 21, "depth": 2, "kind": "standard", "steepness": 8.0, "walks": True},
    "walk over ranks": {
        "seed": 13, "depth": 2, "kind": "quantile", "steepness": 8.0, "walks": True,
    },
    "walk under a cost matrix of two classes": {
        "seed": 14, "depth": 3, "n_classes": 2, "steepness": 8.0, "leaves": "costs", "walks": True,
    },
}  # fmt: skip
N_ROWS = 10


@dataclass(frozen=True)
class GoldenCase:
    """A tree, rows in original units, and what it must say about them."""

    name: str
    model: TreeModel
    rows: np.ndarray
    probabilities: np.ndarray
    predicted: np.ndarray

    @property
    def classifier(self):
        return classifier_of(self.model, named=False)


def golden_cases() -> list[GoldenCase]:
    return [_read(case) for case in json.loads(TABLE.read_text(encoding="utf-8"))]


def _read(case) -> GoldenCase:
    tree, rows = case["tree"], np.array(case["rows"])
    parts = {key: np.array(tree[key]) for key in ("weights", "thresholds", "leaf_values")}
    scaling = scaling_from(tree["scaling"], {k: np.array(v) for k, v in tree["arrays"].items()})
    n_rows, n_features = rows.shape
    model = TreeModel(
        parameters=TreeParameters(**parts),
        steepness=tree["steepness"],
        scaling=scaling,
        classes=np.array(tree["classes"]),
        feature_names=tuple(f"feature {j}" for j in range(n_features)),
        summary=FeatureSummary.of(rows, np.ones(n_rows), scaling.transform(rows).mean(axis=0)),
        walk=Walk(**{k: np.array(v) for k, v in tree["walk"].items()}) if "walk" in tree else None,
        **{key: np.array(tree[key]) for key in ("distributions", "call_costs") if key in tree},
    )
    found = np.array(case["probabilities"]), np.array(case["predicted"])
    return GoldenCase(case["name"], model, rows, *found)


def _walking(model: TreeModel, X: np.ndarray) -> TreeModel:
    """The same tree with a walk that was chosen on the rows."""
    n_classes = len(model.classes)
    gains = np.eye(n_classes) if model.call_costs is None else decision_gains(model.call_costs)
    rows = Arriving(model.scaled(X).T, model.predict_index(X), np.ones(len(X)))
    made, walk = fit_walk(model.parameters, model.steepness, model.scaling, rows, gains)
    return replace(model, parameters=made, walk=walk.counted(rows, model.scaling, gains))


def _made(name: str, settings) -> dict:
    settings = dict(settings)
    walks = settings.pop("walks", False)
    model, X = random_model(**settings, labels="integer")
    model = _walking(model, X) if walks else model
    # Rows whose probabilities were made consistent with the predicted class come first.
    mixture = model.leaf_proba(X) @ model.leaf_shares.T
    apart = np.argmax(mixture, axis=1) != model.predict_index(X)
    rows = X[np.argsort(~apart, kind="stable")[:N_ROWS]]
    rows[1::2, 0] *= 1.5  # between training values, and beyond them
    rows[-1, 0] *= 1e6
    tree = {
        "weights": model.parameters.weights, "thresholds": model.parameters.thresholds,
        "leaf_values": model.parameters.leaf_values, "distributions": model.distributions,
        "call_costs": model.call_costs, "classes": model.classes,
    }  # fmt: skip
    listed = {key: value.tolist() for key, value in tree.items() if value is not None}
    if model.walk is not None:
        listed["walk"] = {f.name: getattr(model.walk, f.name).tolist() for f in fields(model.walk)}
    listed["steepness"], listed["scaling"] = model.steepness, model.scaling.kind
    listed["arrays"] = {key: value.tolist() for key, value in model.scaling.arrays().items()}
    return {
        "name": name,
        "tree": listed,
        "rows": rows.tolist(),
        "probabilities": model.predict_proba(rows).tolist(),
        "predicted": model.classes[model.predict_index(rows)].tolist(),
    }


if __name__ == "__main__":
    known = {case["name"]: case for case in json.loads(TABLE.read_text(encoding="utf-8"))}
    made = [known.get(name) or _made(name, settings) for name, settings in CASES.items()]
    TABLE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
