"""Which feature counts how much at which split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softsplit.fitted.model import holder_of
from softsplit.plots.canvas import DIVERGING, INK, axes, minus, plain
from softsplit.reading.outline import outline
from softsplit.support.arrays import FloatArray

WRITTEN = 40
"""Up to so many features, weights are written into their cells."""


@dataclass(repr=False, eq=False)
class CoefficientsDisplay:
    """Heat map of weights, one row per feature in use and one column per split.

    Weights are in scaled units, in which features can be compared; they lie in [-1, 1]. A feature
    of positive weight sends rows to the left as it grows.

    Parameters
    ----------
    weights : array of shape (n_used, n_splits)
    feature_names, split_names : lists of str

    Attributes
    ----------
    ax_, figure_, image_
    """

    weights: FloatArray
    feature_names: list[str]
    split_names: list[str]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, ax: Any = None
    ) -> CoefficientsDisplay:
        """Draw the weights of a fitted tree, the most important features first."""
        tree = holder_of(estimator)
        model = tree.tree_.with_names(feature_names)
        splits = [question.node for question in outline(model).questions()]
        weights = model.parameters.weights[:, splits]
        used = np.flatnonzero(np.any(np.abs(weights) > model.zero_threshold, axis=1))
        if not len(used):
            raise ValueError("the tree uses no feature; there are no coefficients to draw.")
        columns = np.array(model.table_coding.places)[model.table_coding.homes[used]]
        shares = getattr(tree, "feature_importances_", np.zeros(columns.max() + 1))
        used = used[np.lexsort((columns, -shares[columns]))]  # those of one column together
        names = [model.feature_names[j] for j in used]
        return cls(weights[used], names, [f"question {i + 1}" for i in range(len(splits))]).plot(ax)

    def plot(self, ax: Any = None) -> CoefficientsDisplay:
        """Draw on ``ax`` or on a new figure."""
        n_features, n_splits = self.weights.shape
        names = [plain(name, 32) for name in self.feature_names]
        longest = max(map(len, names))
        size = (1.6 + 0.075 * longest + 0.62 * n_splits, 1.0 + 0.24 * min(n_features, 120))
        ax = axes(ax, size)
        self.ax_, self.figure_ = ax, ax.figure
        shown = np.where(self.weights == 0, np.nan, self.weights)
        end = self._largest
        self.image_ = ax.imshow(shown, cmap=DIVERGING, vmin=-end, vmax=end, aspect="auto")
        ax.set_xticks(range(n_splits), self.split_names, rotation=45 if n_splits > 3 else 0)
        ax.set_yticks(range(n_features), names)
        ax.tick_params(length=0)
        ax.set_xticks(np.arange(n_splits + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n_features + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="#dddddd", linewidth=0.6)
        ax.tick_params(which="minor", length=0)
        if n_features <= WRITTEN:
            self._write()
        bar = ax.figure.colorbar(self.image_, ax=ax, shrink=min(1.0, 6 / max(n_features, 6)))
        bar.set_label("weight, scaled units")
        return self

    @property
    def _largest(self) -> float:
        """End of the colours: 1, or the largest weight of a tree without a box."""
        return max(1.0, float(np.max(np.abs(self.weights))))

    def _write(self) -> None:
        for (i, t), weight in np.ndenumerate(self.weights):
            if weight != 0:
                ink = "white" if abs(weight) > 0.7 * self._largest else INK
                text = minus(f"{weight:.2f}")
                self.ax_.text(t, i, text, ha="center", va="center", color=ink, fontsize=8)
