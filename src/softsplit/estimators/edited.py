"""A fitted tree that is changed by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date as calendar
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.fitted import checked_rows, know_table
from softsplit.reading import editing
from softsplit.reading.edits import Edit
from softsplit.reading.model import TreeModel, holder_of
from softsplit.support.messages import shown


class EditedTree(SoftTreeClassifier):
    """A copy of a fitted tree with verbs that change it, as ``tree.edit()`` returns it.

    Every verb returns a new copy, so that they chain; the tree before stays as it is. Questions and
    leaves have the numbers of the printed text (``export_text``) of the tree at that moment, and
    coefficients and thresholds its units. What is printed is what is predicted: ``predict``,
    ``predict_proba``, texts, pages, model files, exports and ONNX graphs follow every edit. Each
    takes a ``reason``, which is kept with its date in the tree (``edits_``), in the text and in
    model files. Attributes and the other methods are those of ``SoftTreeClassifier``.

    Attributes
    ----------
    original_ : TreeModel
        The tree before the edits.
    """

    original_: TreeModel

    def drop_feature(self, feature: Any, *, reason: str | None = None) -> Self:
        """Remove a feature from all questions: it counts as its training mean.

        Thresholds move by what the feature contributes at its mean. A question that has no other
        term is pruned: to one leaf if both of its sides are leaves, otherwise to the side that the
        mean takes.

        Parameters
        ----------
        feature : str
            A column of the table, or one of its terms as printed; without names a position.
        reason : str, optional
        """
        return self._changed(editing.drop_feature, {"feature": feature}, reason)

    def round_weights(
        self, digits: int = 2, *, question: int | None = None, reason: str | None = None
    ) -> Self:
        """Round coefficients to so many significant digits, in one question or in all.

        Thresholds move by what the sums change at the training means.
        """
        given = {"digits": digits} | ({} if question is None else {"question": question})
        return self._changed(editing.round_weights, given, reason)

    def set_threshold(self, question: int, value: float, *, reason: str | None = None) -> Self:
        """Set the number with which a question compares its sum.

        The gate, from which probabilities are computed, moves by as much.
        """
        return self._changed(editing.set_threshold, {"question": question, "value": value}, reason)

    def set_weight(
        self, question: int, feature: Any, value: float, *, reason: str | None = None
    ) -> Self:
        """Set the coefficient of a feature in a question; 0 removes the term.

        Parameters
        ----------
        question : int
        feature : str
            A term as printed, also one that the question does not have yet.
        value : float
            In units in which the others are printed.
        reason : str, optional
        """
        given = {"question": question, "feature": feature, "value": value}
        return self._changed(editing.set_weight, given, reason)

    def set_leaf(self, leaf: int, value: Any, *, reason: str | None = None) -> Self:
        """Set the class of a leaf, or its class probabilities.

        Parameters
        ----------
        leaf : int
            Its number in the text, counted from the top.
        value : class, mapping or sequence of float
            A class: it is predicted there, and classes that are more probable are lowered to it.
            Probabilities, by class or in the order of ``classes_``: they must add up to one, and
            the leaf predicts what is best by them.
        reason : str, optional
        """
        return self._changed(editing.set_leaf, {"leaf": leaf, "value": value}, reason)

    def prune(self, question: int, answer: str | None = None, *, reason: str | None = None) -> Self:
        """Remove a question.

        Parameters
        ----------
        question : int
        answer : {"yes", "no"}, optional
            What follows from this answer takes its place. By default one leaf does, with the
            probabilities of the leaves below it, weighted by the rows that arrived there.
        reason : str, optional
        """
        given = {"question": question} | ({} if answer is None else {"answer": answer})
        return self._changed(editing.prune, given, reason)

    def rename(
        self,
        features: Mapping[str, str] | None = None,
        classes: Mapping[Any, Any] | None = None,
        *,
        reason: str | None = None,
    ) -> Self:
        """Give columns of the table or classes other names, {"old": "new"}.

        Tables to predict have the new column names from then on, and ``predict`` returns the new
        classes.
        """
        pairs = {"features": features, "classes": classes}
        given = {name: dict(value) for name, value in pairs.items() if value}
        made = self._changed(editing.rename, given, reason)
        if features:
            know_table(made, made.tree_, named=True)
        return made

    def count_rows(self, X: Any, y: Any) -> Self:
        """Count again how many rows of which class arrive in each leaf, best the training rows."""
        rows, labels = checked_rows(self, X), known_labels(self.tree_, y)
        if len(rows) != len(labels):
            raise ValueError(f"X has {len(rows)} rows, y has {len(labels)} classes.")
        made = copy.copy(self)
        made.tree_ = editing.counted(self.tree_, rows, labels)
        return made

    @property
    def code(self) -> str:
        """Lines of Python that repeat the edits on a tree named ``tree``."""
        known = len(self.original_.edits.listed)
        lines = []
        for edit in self.tree_.edits.listed[known:]:
            reason = "" if edit.reason is None else f", reason={edit.reason!r}"
            lines.append(f"    .{edit.call[:-1]}{reason})")
        return "\n".join(["edited = (", "    tree.edit()", *lines, ")"])

    def _changed(
        self, verb: Callable[..., TreeModel], given: dict[str, Any], reason: str | None
    ) -> Self:
        if reason is not None and not isinstance(reason, str):
            raise ValueError(f"reason must be a text or None, got {shown(reason)}.")
        tree = verb(self.tree_, **given)
        plain = {name: _plain(value) for name, value in given.items()}
        day = vars(self).get("date_") or calendar.today().isoformat()
        edit = Edit(verb.__name__, plain, day, reason)
        made = copy.copy(self)
        made.tree_ = replace(tree, edits=tree.edits.noted(edit))
        know_table(made, made.tree_, named=hasattr(self, "feature_names_in_"))
        return made


def known_labels(tree: TreeModel, y: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Positions of classes that the tree knows; an error names one that it does not."""
    labels, known = np.asarray(y), tree.labels
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension, got the shape {labels.shape}.")
    place = {label: k for k, label in enumerate(known)}
    listed = labels.tolist()
    strange = next((label for label in listed if label not in place), None)
    if strange is not None:
        raise ValueError(f"y holds {shown(strange)}, which is no class of the tree: {known}.")
    return np.array([place[label] for label in listed], dtype=np.int64)


def edited(estimator: Any, date: str | None = None) -> EditedTree:
    """A copy of a fitted tree, or of the one that a search has chosen, to be changed by hand."""
    if date is not None:
        try:
            calendar.fromisoformat(date)
        except (TypeError, ValueError):
            raise ValueError(f"date must be a day like '2026-11-18', got {shown(date)}.") from None
    holder = holder_of(estimator)
    names = SoftTreeClassifier().get_params(deep=False)
    given = {n: v for n, v in holder.get_params(deep=False).items() if n in names}
    made = clone(EditedTree(**given))
    made.tree_ = made.original_ = holder.tree_
    if date is not None:
        made.date_ = date
    know_table(made, made.tree_, named=hasattr(holder, "feature_names_in_"))
    return made


def _plain(value: Any) -> Any:
    """An argument as plain Python values, as model files hold them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {_plain(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
