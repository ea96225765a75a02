"""What a skops file of a tree holds besides numpy arrays and plain values."""

from __future__ import annotations

SKOPS_TYPES: tuple[str, ...] = (
    "softsplit.estimators.classifier.SoftTreeClassifier",
    "softsplit.estimators.classifier_cv.SoftTreeClassifierCV",
    "softsplit.problem.optimality.KKT",
    "softsplit.reading.model.TreeModel",
    "softsplit.reading.summary.FeatureSummary",
    "softsplit.tree.scaling.LinearScaling",
    "softsplit.tree.scaling.QuantileScaling",
    "softsplit.solvers.base.Solution",
    "softsplit.solvers.stopping.Search",
    "softsplit.training.wide.Screening",
    "softsplit.tree.parameters.TreeParameters",
    "softsplit.variables.coding.Coding",
    "softsplit.variables.variable.Variable",
)
"""Types to name as ``trusted`` when a tree is loaded with skops: all hold arrays and no more."""
