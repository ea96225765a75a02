"""What a skops file of a tree holds besides numpy arrays and plain values."""

from __future__ import annotations

SKOPS_TYPES: tuple[str, ...] = (
    "softsplit.classifier.SoftTreeClassifier",
    "softsplit.classifier_cv.SoftTreeClassifierCV",
    "softsplit.optimality.KKT",
    "softsplit.reading.summary.FeatureSummary",
    "softsplit.scaling.LinearScaling",
    "softsplit.scaling.QuantileScaling",
    "softsplit.solvers.base.Solution",
    "softsplit.tree.TreeParameters",
)
"""Types to name as ``trusted`` when a tree is loaded with skops: all hold arrays and no more."""
