"""A fitted tree that is changed by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date as calendar
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import clone

from softsplit.advice.differences import Comparison, compare_trees
from softsplit.editing import edit as editing
from softsplit.editing.leaves import set_leaf
from softsplit.editing.names import rename
from softsplit.editing.refit import placed_rows, refitted, training_loss
from softsplit.estimators.base import keep as keep_outcome
from softsplit.estimators.base import model_settings, profiled, training_run
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.row_reading import (
    checked_rows,
    know_table,
    read_rows,
    tree_labels,
    validated_rows,
)
from softsplit.estimators.training_rows import checked_weights, training_rows
from softsplit.fitted.edits import Edit, Edits
from softsplit.fitted.model import TreeModel, holder_of
from softsplit.support.messages import unfit
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.rows import Rows
from softsplit.training.run import train
from softsplit.variables import CodedRows


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
        tree, origins = editing.drop_feature(self.tree_, feature)
        moved = editing.moved_thresholds(self.tree_, tree, origins)
        return self._noted(tree, Edit("drop_feature", {"feature": feature}, outcome=moved), reason)

    def round_weights(
        self, digits: int = 2, *, question: int | None = None, reason: str | None = None
    ) -> Self:
        """Round coefficients to so many significant digits, in one question or in all.

        Thresholds move by what the sums change at the training means.
        """
        given = {"digits": digits} | ({} if question is None else {"question": question})
        return self._changed(editing.round_weights, given, reason)

    def set_threshold(self, question: int, value: float, *, reason: str | None = None) -> Self:
        """Set the number with which a question compares its sum; of one in whole points the fewest
        at which it holds.

        The gate, from which probabilities are computed, moves by as much.
        """
        return self._changed(editing.set_threshold, {"question": question, "value": value}, reason)

    def set_weight(
        self, question: int, feature: Any, value: float, *, reason: str | None = None
    ) -> Self:
        """Set the coefficient of a feature in a question; 0 removes the term.

        Questions in whole points have no other coefficients; see ``set_points``.

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

    def set_points(
        self, question: int, feature: Any, value: Any, points: int, *, reason: str | None = None
    ) -> Self:
        """Set the whole points that a value of a feature counts in a question.

        Parameters
        ----------
        question : int
        feature : str
        value : object
            A level, or a number: all numbers of its range have the same points. None: a missing
            value.
        points : int
        reason : str, optional
        """
        given = {"question": question, "feature": feature, "value": value, "points": points}
        return self._changed(editing.set_points, given, reason)

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
        return self._changed(set_leaf, {"leaf": leaf, "value": value}, reason)

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
        renamed = self._changed(rename, given, reason)
        if features:
            know_table(renamed, renamed.tree_, named=True)
        return renamed

    def count_rows(self, X: Any, y: Any) -> Self:
        """Count again how many rows of which class arrive in each leaf, best the training rows."""
        rows = checked_rows(self, X)
        labels = tree_labels(self.tree_, y, len(rows))
        return with_tree(self, editing.counted(self.tree_, rows, labels))

    @property
    def code(self) -> str:
        """Lines of Python that repeat the edits on a tree named ``tree``, and refits on X and y."""
        known = len(self.original_.edits.listed)
        lines = []
        for edit in self.tree_.edits.listed[known:]:
            reason = "" if edit.reason is None else f", reason={edit.reason!r}"
            call = (
                edit.call
                if edit.verb != "refit"
                else f"refit(X, y, keep={edit.arguments['keep']!r})"
            )
            lines.append(f"    .{call[:-1]}{reason})")
        return "\n".join(["edited = (", "    tree.edit()", *lines, ")"])

    def compare(self, X: Any, y: Any) -> Comparison:
        """Figures of the tree before the edits and after them, on rows and their classes."""
        before, after = self.original_, self.tree_
        if before.labels != after.labels:
            raise ValueError("classes were renamed: compare before you rename them.")
        if before.column_names != after.column_names:
            pairs = zip(before.column_names, after.column_names, strict=True)
            before = rename(before, {old: new for old, new in pairs if old != new})
        rows = [checked_rows(with_tree(self, tree), X) for tree in (before, after)]
        labels = tree_labels(after, y, len(rows[0]))
        return compare_trees(before, after, rows[0], rows[1], labels)

    @property
    def day(self) -> str:
        """The day that is noted with edits: the one that was given, or today."""
        given: str | None = vars(self).get("date_")
        return given or calendar.today().isoformat()

    def _changed(
        self, verb: Callable[..., TreeModel], given: dict[str, Any], reason: str | None
    ) -> Self:
        tree = verb(self.tree_, **given)
        moving = verb in (editing.set_weight, editing.round_weights)
        outcome = editing.moved_thresholds(self.tree_, tree) if moving else ""
        return self._noted(tree, Edit(verb.__name__, given, outcome=outcome), reason)

    def _noted(self, tree: TreeModel, edit: Edit, reason: str | None) -> Self:
        """A copy with another tree, whose list of edits has one more, made on this day."""
        plain = {name: _plain(value) for name, value in edit.arguments.items()}
        edit = replace(edit, arguments=plain, date=self.day, reason=checked_reason(reason))
        return with_tree(self, replace(tree, edits=tree.edits.noted(edit)))


EstimatorType = TypeVar("EstimatorType", bound=SoftTreeClassifier)


def with_tree(
    estimator: EstimatorType, tree: TreeModel, known: SoftTreeClassifier | None = None
) -> EstimatorType:
    """A copy of an estimator with another tree, for tables as ``known``, by default it, takes."""
    twin = copy.copy(estimator)
    twin.tree_ = tree
    know_table(twin, tree, named=hasattr(known or estimator, "feature_names_in_"))
    return twin


def checked_reason(reason: Any) -> str | None:
    """The reason of an edit, a text or None."""
    if reason is not None and not isinstance(reason, str):
        raise unfit("reason", reason, "must be a text or None")
    return reason


def edited(estimator: Any, date: str | None = None) -> EditedTree:
    """A copy of a fitted tree, or of the one that a search has chosen, to be changed by hand."""
    if date is not None:
        try:
            calendar.fromisoformat(date)
        except (TypeError, ValueError):
            raise unfit("date", date, "must be a day like '2026-11-18'") from None
    holder = holder_of(estimator)
    names = SoftTreeClassifier().get_params(deep=False)
    given = {n: v for n, v in holder.get_params(deep=False).items() if n in names}
    twin = with_tree(clone(EditedTree(**given)), holder.tree_, holder)
    twin.original_ = holder.tree_
    if date is not None:
        twin.date_ = date
    return twin


KEEPS = ("edited", "structure", "features")


def refit(
    estimator: Any,
    X: Any,
    y: Any,
    keep: str,
    sample_weight: Any = None,
    reason: str | None = None,
    date: str | None = None,
) -> SoftTreeClassifier:
    """A copy of a fitted tree, or of the one that a search has chosen, trained again."""
    if keep not in KEEPS:
        raise unfit("keep", keep, f"must be one of {', '.join(map(repr, KEEPS))}")
    holder, reason = holder_of(estimator), checked_reason(reason)
    tree: TreeModel = holder.tree_
    twin = edited(estimator, date or vars(estimator).get("date_"))
    # 1. The rows, in the coding of the tree.
    table = read_rows(twin, X, whole=True)
    matrix = table.X if isinstance(table, CodedRows) else table
    labels = tree_labels(tree, y, len(matrix))
    weight = checked_weights(sample_weight, matrix)
    names = np.array(tree.feature_names, dtype=object)
    rows = Rows(
        X=matrix, labels=labels, weight=weight, classes=tree.classes, names=names,
        coding=tree.coding, target=tree.target,
    )  # fmt: skip
    plain = rows
    if isinstance(table, CodedRows) and table.coding.pointed:  # a profile is one of values
        coded = table.coded_as(None)
        plain = replace(rows, X=coded.X, coding=coded.coding, shared=coded.shared)
    rows = rows.counted()
    # 2. The tree with other numbers, and for "features" a new one where that is better.
    prepared = placed_rows(model_settings(twin), tree, rows)
    after = profiled(refitted(prepared, tree, rows, keep_edited=keep == "edited"), plain)
    if keep == "features":
        anew = _trained_anew(twin, X, y, sample_weight)
        columns = validated_rows(anew, X)[weight > 0]
        loss = training_loss(prepared, anew.tree_, replace(rows, X=columns))
        if loss <= training_loss(prepared, tree, rows):
            after = replace(anew.tree_, edits=Edits(tree.edits.listed))
    # 3. A copy that says so.
    edit = Edit("refit", {"keep": keep, "rows": len(rows.labels)}, twin.day, reason)
    after = replace(after, edits=after.edits.noted(edit))
    if not isinstance(estimator, EditedTree):
        return with_tree(SoftTreeClassifier(**twin.get_params(deep=False)), after, holder)
    twin = with_tree(twin, after, holder)
    twin.original_ = estimator.original_
    return twin


def _trained_anew(twin: EditedTree, X: Any, y: Any, sample_weight: Any) -> SoftTreeClassifier:
    """A tree with the parameters of ``twin`` that may use the columns of its tree alone."""
    tree = twin.tree_
    used = {tree.column_names[int(j)] for j in tree.selected_columns}
    places = set(tree.selected_columns.tolist())
    anew = SoftTreeClassifier(**twin.get_params(deep=False))

    def allowed(prepared: Prepared) -> Prepared:
        coding, n_features = prepared.coding, prepared.problem.n_features
        if coding is None:
            free = np.isin(np.arange(n_features), list(places))
        else:
            own = [coding.names[coding.places[home]] in used for home in coding.homes]
            free = np.array(own, dtype=bool)
        bounds = prepared.problem.bounds
        narrowed = replace(
            bounds,
            low=np.where(free[:, None], bounds.low, 0.0),
            high=np.where(free[:, None], bounds.high, 0.0),
        )
        return replace(prepared, problem=replace(prepared.problem, bounds=narrowed))

    run = training_run(anew)
    rows = training_rows(anew, X, y, sample_weight)
    if type(rows) is not Rows:
        raise ValueError(
            "keep='features' is for rows in memory that are not sparse; fit a tree to the columns "
            "themselves."
        )
    prepared = allowed(prepare(model_settings(anew, X), rows))
    run = run.adapted(prepared, partial(validated_rows, anew))
    run = run.ready(prepared.problem, smooth=not prepared.problem.penalties.counts)
    keep_outcome(anew, prepared, train(prepared, run), run.solver.zero_threshold, rows=rows)
    return anew


def _plain(value: Any) -> Any:
    """An argument as plain Python values, as model files hold them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {_plain(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
