"""Random fitted trees for the tests that read, draw and store trees: no training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from softsplit import SoftTreeClassifier
from softsplit.engines.samples import Samples
from softsplit.fitted.importance import feature_importances
from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import FeatureSummary
from softsplit.persistence.estimators import classifier_of
from softsplit.tree.parameters import Topology, TreeParameters
from softsplit.tree.scaling import KINDS, fit_scaling

LEAVES = ("shares", "classes", "costs")

LABELS = {
    "string": ["$x_1$", "a, b", "high risk", "naïve €", "p", "q", "r", "\U0001f333"],
    "integer": [-3, 0, 2, 5, 8, 9, 11, 2**40],
    "boolean": [False, True],
    "number": [-1.5, 0.0, 0.25, 1e300, 1e301, 1e302, 1e303, 1e304],
}


def random_rows(rng, n_rows, n_features):
    """Columns of different kinds: skewed, 0/1, integer, constant, normal."""
    makers = [
        lambda: rng.lognormal(2.0, 1.5, n_rows),
        lambda: rng.integers(0, 2, n_rows).astype(float),
        lambda: rng.integers(-5, 30, n_rows).astype(float),
        lambda: np.full(n_rows, 7.0),
        lambda: rng.normal(-40.0, 0.01, n_rows),
    ]
    return np.column_stack([makers[j % len(makers)]() for j in range(n_features)])


def random_model(
    seed,
    depth=2,
    n_classes=3,
    kind="minmax",
    n_features=5,
    steepness=64.0,
    labels="string",
    n_rows=60,
    leaves="shares",
):
    """A tree anywhere in the box over rows of every kind, and the rows.

    ``leaves`` say class shares, have classes besides as after training for costs (for odd seeds
    their most frequent one), or are called by a cost matrix.
    """
    rng = np.random.default_rng([seed, depth, n_classes, KINDS.index(kind)])
    X = random_rows(rng, n_rows, n_features)
    if kind == "identity":
        X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    scaling = fit_scaling(kind, X)
    topology = Topology(depth)
    weights = rng.uniform(-1, 1, (n_features, topology.n_branches))
    weights[rng.uniform(size=weights.shape) < 0.3] = 0.0
    scaled = scaling.transform(X)
    through = scaled[rng.integers(n_rows, size=topology.n_branches)]
    thresholds = np.einsum("tj,jt->t", through, weights) / n_features
    mixed = rng.dirichlet(np.full(n_classes, 0.3), topology.n_leaves).T
    leaf_values = mixed / mixed.sum(axis=0)
    said = {}
    if leaves == "classes":
        said["distributions"] = leaf_values
        anyhow = rng.integers(n_classes, size=topology.n_leaves)
        calls = leaf_values.argmax(axis=0) if seed % 2 else anyhow
        leaf_values = np.eye(n_classes)[calls].T
    elif leaves == "costs":
        said["call_costs"] = rng.uniform(0, 9, (n_classes, n_classes)) * (1 - np.eye(n_classes))
    y = rng.integers(0, n_classes, n_rows)
    samples = Samples.from_arrays(X, y, n_classes, np.ones(n_rows), scaling.transform)
    model = TreeModel(
        parameters=TreeParameters(weights, np.clip(thresholds, -1, 1), leaf_values),
        steepness=steepness,
        scaling=scaling,
        classes=np.array(LABELS[labels][:n_classes]),
        feature_names=tuple(f"feature {j}" for j in range(n_features)),
        summary=FeatureSummary.of(X, np.ones(n_rows), samples.mean),
        **said,
    )
    return model, X


def random_classifier(seed, **settings) -> tuple[SoftTreeClassifier, np.ndarray]:
    """The same as a fitted estimator."""
    model, X = random_model(seed, **settings)
    scaled = model.scaling.transform(X).T
    importances = feature_importances(model.parameters, model.steepness, scaled, np.ones(len(X)))
    return classifier_of(replace(model, importances=importances), named=True), X


def alter(classifier: SoftTreeClassifier, **parts) -> None:
    """Put other parts into the tree of a fitted classifier: classes, weights, importances ..."""
    tree = classifier.tree_
    inner = {name: parts.pop(name) for name in list(parts) if hasattr(tree.parameters, name)}
    parameters = replace(tree.parameters, **inner)
    classifier.tree_ = replace(tree, parameters=parameters, **parts)


TREES = {
    "seed": st.integers(0, 10_000),
    "depth": st.integers(1, 4),
    "kind": st.sampled_from(KINDS),
    "labels": st.sampled_from(sorted(LABELS)),
}


def classifier_and_frame(seed, depth, kind, labels):
    """A random tree by the draws of ``TREES``, and rows for it."""
    n_classes = 2 if labels == "boolean" else 2 + seed % 5
    tree, X = random_classifier(
        seed, depth=depth, n_classes=n_classes, kind=kind, labels=labels, steepness=512.0,
        leaves=LEAVES[seed % 3],
    )  # fmt: skip
    return tree, pd.DataFrame(X, columns=tree.feature_names_in_)
