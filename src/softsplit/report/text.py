"""A fitted tree as plain text, with splits in original units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from softsplit.classifier import SoftTreeClassifier
from softsplit.tree import FloatArray, Topology

MIXED_LEAF = 0.005
"""Class shares of a leaf below this are not worth a reader's time."""

SHOWN_RANKS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Ranks whose values are told, under the quantile scaling."""


def export_text(
    classifier: Any,
    feature_names: Sequence[str] | None = None,
    *,
    max_terms: int | None = None,
    precision: int = 4,
) -> str:
    """The tree as indented text.

    Each split reads "go left if <terms> > <threshold>": a sample on the boundary goes either way
    with probability one half, and the bracket says by how much the left side must exceed the
    threshold to be 95 % sure. Coefficients are in original units, multiplied so that the largest
    is one. A branch above leaves of one class decides nothing and is written as one leaf.

    Under the quantile scaling a split on one feature is written as a threshold in original units
    too; in a longer one each feature stands for its rank from 0 to 1, and lines below the tree say
    which values have which rank.

    Parameters
    ----------
    classifier : fitted SoftTreeClassifier
        Or what has one as its ``best_estimator_``.
    feature_names : sequence of str, optional
        Names to use instead of the fitted ones (``feature_names_in_`` or x0, x1, ...).
    max_terms : int, optional
        Most terms written per split; the rest is counted.
    precision : int, default=4
        Significant digits.
    """
    check_is_fitted(classifier)
    classifier = getattr(classifier, "best_estimator_", classifier)
    names = _names(classifier, feature_names)
    topology = Topology.with_branches(len(classifier.intercept_))
    lines: list[str] = []
    ranked: set[int] = set()

    def write(node: int, indent: str) -> None:
        below = {_leaf_label(classifier, leaf) for leaf in topology.leaves_below(node)}
        if len(below) == 1:  # a leaf, or a branch that decides nothing
            lines.append(f"{indent}class {below.pop()}")
            return
        condition = _split(classifier, node, names, max_terms, precision, ranked)
        if condition is None:
            share = _constant_share(classifier, node)
            lines.append(f"{indent}always: left with probability {share:.{precision}g}")
        else:
            lines.append(f"{indent}if {condition}")
        write(2 * node + 1, indent + "|   ")
        lines.append(f"{indent}else")
        write(2 * node + 2, indent + "|   ")

    write(0, "")
    lines += [_ranks(classifier, j, names[j], precision) for j in sorted(ranked)]
    return "\n".join(lines)


def _names(classifier: SoftTreeClassifier, given: Sequence[str] | None) -> list[str]:
    if given is not None:
        if len(given) != classifier.n_features_in_:
            raise ValueError(
                f"feature_names holds {len(given)} names for {classifier.n_features_in_} features."
            )
        return [str(name) for name in given]
    fitted = getattr(classifier, "feature_names_in_", None)
    if fitted is not None:
        return [str(name) for name in fitted]
    return [f"x{j}" for j in range(classifier.n_features_in_)]


def _split(
    classifier: SoftTreeClassifier,
    branch: int,
    names: Sequence[str],
    max_terms: int | None,
    precision: int,
    ranked: set[int],
) -> str | None:
    """The condition to go left; features that it names by rank are added to ``ranked``."""
    coef, intercept = classifier.coef_[branch], classifier.intercept_[branch]
    used = [j for j in np.argsort(-np.abs(coef), kind="stable") if _in_use(classifier, j, branch)]
    if not used:
        return None
    scale = float(np.abs(coef[used[0]]))
    shown = used if max_terms is None else used[:max_terms]
    width = np.log(19.0) / (classifier.steepness * scale)
    threshold = -float(intercept) / scale
    if not classifier.scaling_.linear:
        cut = threshold * float(np.sign(coef[used[0]]))
        if len(used) == 1 and 0 < cut < 1:
            return _cut(classifier, used[0], names[used[0]], branch, cut, width, precision)
        ranked.update(int(j) for j in shown)
        names = [f"rank({name})" for name in names]
    text = _terms(coef / scale, shown, names, precision)
    if len(shown) < len(used):
        text += f" + ... ({len(used) - len(shown)} more)"
    return f"{text} > {threshold:.{precision}g}   (95 % sure beyond +-{width:.2g})"


def _cut(
    classifier: SoftTreeClassifier,
    feature: int,
    name: str,
    branch: int,
    cut: float,
    width: float,
    precision: int,
) -> str:
    """A split at one rank of one feature, in original units."""
    low, middle, high = (
        f"{classifier.scaling_.to_original(feature, rank):.{precision}g}"
        for rank in (cut - width, cut, cut + width)
    )
    sign = ">" if classifier.coef_[branch, feature] > 0 else "<"
    return f"{name} {sign} {middle}   (95 % sure below {low} and above {high})"


def _ranks(classifier: SoftTreeClassifier, feature: int, name: str, precision: int) -> str:
    """Which values of a feature have which rank."""
    places = (
        f"{rank:g} at {classifier.scaling_.to_original(feature, rank):.{precision}g}"
        for rank in SHOWN_RANKS
    )
    return f"rank({name}): {', '.join(places)}"


def _in_use(classifier: SoftTreeClassifier, feature: int, branch: int) -> bool:
    selected = feature in set(classifier.selected_features_.tolist())
    return bool(selected and classifier.coef_[branch, feature] != 0)


def _terms(coef: FloatArray, shown: Sequence[Any], names: Sequence[str], precision: int) -> str:
    parts: list[str] = []
    for j in shown:
        size = abs(float(coef[j]))
        body = names[j] if size == 1.0 else f"{size:.{precision}g} {names[j]}"
        sign = "-" if coef[j] < 0 else "+"
        parts.append(f"{sign} {body}" if parts else (f"-{body}" if sign == "-" else body))
    return " ".join(parts)


def _constant_share(classifier: SoftTreeClassifier, branch: int) -> float:
    score = classifier.steepness * float(classifier.intercept_[branch])
    return float(1.0 / (1.0 + np.exp(-np.clip(score, -700, 700))))


def _leaf_label(classifier: SoftTreeClassifier, leaf: int) -> str:
    shares = classifier.leaf_classes_[:, leaf]
    order = np.argsort(-shares, kind="stable")
    labels = classifier.classes_.tolist()
    if shares[order[0]] >= 1 - MIXED_LEAF:
        return f"{labels[order[0]]}"
    kept = [k for k in order if shares[k] >= MIXED_LEAF]
    return ", ".join(f"{labels[k]} {100 * shares[k]:.0f} %" for k in kept)
