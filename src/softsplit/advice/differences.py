"""Two trees side by side: their questions, the answers they give the same rows, and figures."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import ndiff
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from softsplit.advice.monotone_check import check_effect
from softsplit.fitted.model import TreeModel
from softsplit.fitted.monotone import MonotoneEffect, required_effects
from softsplit.reading.outline import outline
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import counted, visible
from softsplit.support.numbers import number

SIDES = ("true", "false")
"""Left and right of a question."""

SHOWN_ROWS = 10
"""Rows whose class changes that a text names."""

SAME_NUMBER = 1e-9
"""Part of a predicted number by which another may differ and be the same."""


@dataclass(frozen=True)
class Comparison:
    """What two trees say about the same rows.

    It prints as text; ``to_frame()`` has the figures.

    Attributes
    ----------
    figures : dict of (float, float)
        Before and after, by name; none without classes of the rows.
    changed : array of int
        Rows, from 0, whose class, or predicted number, changes.
    before, after : array
        The classes, or numbers, of all rows.
    questions : list of str
        Lines of the printed trees that differ: "- " before, "+ " after.
    monotone : list of (str, str, str)
        The monotone effects that one of the trees was trained for: the effect, and whether it holds
        before and after: "holds for all inputs", "not proved", "does not hold", or "not known" of a
        tree of other classes or columns. Of numbers none are listed.
    what : {"class", "prediction"}
    """

    figures: dict[str, tuple[float, float]]
    changed: NDArray[np.intp]
    before: NDArray[np.object_]
    after: NDArray[np.object_]
    questions: list[str]
    monotone: list[tuple[str, str, str]] = field(default_factory=list)
    what: str = "class"

    @property
    def changed_share(self) -> float:
        """Share of the rows whose class changes."""
        return len(self.changed) / max(len(self.before), 1)

    def to_frame(self) -> pd.DataFrame:
        """One row per figure: before, after, change; the last is how many rows change class."""
        rows = {name: (a, b, b - a) for name, (a, b) in self.figures.items()}
        rows[f"rows whose {self.what} changes"] = (np.nan, len(self.changed), np.nan)
        return pd.DataFrame.from_dict(rows, orient="index", columns=["before", "after", "change"])

    def __str__(self) -> str:
        lines = [*(self.questions or ["The questions are the same."]), ""]
        if self.figures:
            lines.append(f"{'':<20}{'before':>10}{'after':>10}{'change':>10}")
            for name, (a, b) in self.figures.items():
                lines.append(f"{name:<20}{a:>10.4f}{b:>10.4f}{b - a:>+10.4f}")
        for effect, before, after in self.monotone:
            both = f"{before} in both" if before == after else f"before {before}, after {after}"
            lines.append(f"{visible(effect)}: {both}")
        total = counted(len(self.before), "row")
        lines.append(f"{len(self.changed)} of {total} change {self.what}.")
        lines += [
            f"    row {i + 1}: {_shown(self.before[i])} -> {_shown(self.after[i])}"
            for i in self.changed[:SHOWN_ROWS]
        ]
        more = len(self.changed) - SHOWN_ROWS
        return "\n".join([*lines, f"    and {more} more"] if more > 0 else lines)


def _shown(answer: Any) -> str:
    return number(answer, 6) if isinstance(answer, float) else visible(answer)


def compare_trees(
    before: TreeModel,
    after: TreeModel,
    X_before: FloatArray,
    X_after: FloatArray,
    labels: NDArray[Any] | None = None,
) -> Comparison:
    """Compare two trees on the same rows, each coded as its tree takes them.

    ``labels`` are positions among the classes, which are then those of both trees; negative where
    a row has none of them. Of trees for numbers they are the targets, NaN where there is none.
    Figures are of the rows that have one, changes of class of all rows.
    """
    numbers = before.numbers is not None
    if numbers != (after.numbers is not None):
        raise ValueError("one tree predicts classes and the other a number; compare two of a kind.")
    said = [tree.calls(X) for tree, X in ((before, X_before), (after, X_after))]
    if numbers:
        moved = np.abs(said[1] - said[0]) > SAME_NUMBER * np.maximum(*np.abs(said))
    said = [answers.astype(object) for answers in said]
    figures: dict[str, tuple[float, float]] = {}
    known = np.zeros(0, dtype=bool)
    kinds = (tree.numbers for tree in (before, after))
    rates = any(kind is not None and kind.totals is not None for kind in kinds)
    if labels is not None and not rates:  # no row shows a rate
        known = np.isfinite(labels) if numbers else labels >= 0
    if labels is not None and np.any(known):
        pair = [
            tree_figures(tree, X[known], labels[known])
            for tree, X in ((before, X_before), (after, X_after))
        ]
        figures = {name: (pair[0][name], pair[1][name]) for name in pair[0]}
    changed = np.flatnonzero(moved if numbers else said[0] != said[1])
    lines, effects = changed_lines(before, after), [] if numbers else _monotone(before, after)
    what = "prediction" if numbers else "class"
    return Comparison(figures, changed, said[0], said[1], lines, effects, what)


def _monotone(before: TreeModel, after: TreeModel) -> list[tuple[str, str, str]]:
    """The effects that one of the trees was trained for, and whether they hold in each."""
    asked = {
        (tree.column_names[effect.place], effect.sign, effect.levels.levels): effect
        for tree in (before, after)
        for effect in required_effects(tree)
    }
    return [
        (effect.sentence, _holds(effect, before), _holds(effect, after))
        for effect in asked.values()
    ]


def _holds(effect: MonotoneEffect, model: TreeModel) -> str:
    """Whether an effect holds in a tree, in words."""
    check = check_effect(effect, model)
    if check is None:
        return "not known"
    if check.proved:
        return "holds for all inputs"
    return "does not hold" if check.holds is False else "not proved"


def tree_figures(model: TreeModel, X: FloatArray, labels: NDArray[Any]) -> dict[str, float]:
    """Accuracy, balanced accuracy, log-loss and, of two classes, the area under the ROC curve.

    Of a number: R2, where targets differ, and the mean absolute error.
    """
    if model.numbers is not None:
        away = labels - model.calls(X)
        spread = float(np.mean((labels - labels.mean()) ** 2))
        share = {"R2": 1.0 - float(np.mean(away**2)) / spread} if spread > 0 else {}
        return {**share, "mean absolute error": float(np.mean(np.abs(away)))}
    proba, hits = model.predict_proba(X), model.predict_index(X) == labels
    own = np.maximum(proba[np.arange(len(labels)), labels], np.finfo(float).tiny)
    figures = {
        "accuracy": float(np.mean(hits)),
        "balanced accuracy": float(
            np.mean([np.mean(hits[labels == k]) for k in np.unique(labels)])
        ),
        "log-loss": float(-np.mean(np.log(own))),
    }
    positive = labels == 1
    if proba.shape[1] == 2 and 0 < positive.sum() < len(labels):
        n, m = int(positive.sum()), int((~positive).sum())
        ranks = rankdata(proba[:, 1])[positive].sum()
        figures["ROC area"] = float((ranks - n * (n + 1) / 2) / (n * m))
    return figures


def changed_lines(before: TreeModel, after: TreeModel) -> list[str]:
    """Lines of the printed trees that differ, without the rows that arrive."""
    return [line for line in ndiff(_lines(before), _lines(after)) if line[0] in "+-"]


def _lines(model: TreeModel) -> list[str]:
    lines, leaf = [], 0
    for node in outline(model).walk():
        lead = "  " * node.depth + ("" if node.side is None else f"{SIDES[node.side]}: ")
        if node.split is None:
            leaf += 1
            if model.numbers is not None:
                lines.append(f"{lead}leaf {leaf}: {node.label}")
                continue
            shares = model.leaf_shares[:, node.leaf]
            listed = ", ".join(
                f"{visible(label)} {number(100 * float(share), 4)} %"
                for label, share in zip(model.labels, shares, strict=True)
            )
            label = re.sub(r"   \(.*\)$", "", node.label) if model.walk else node.label
            lines.append(f"{lead}leaf {leaf}: {label} ({listed})")
        else:
            asked = node.split.condition() or "always"
            lines.append(f"{lead}question {node.number}: {asked} ({node.split.gate()})")
    return lines
