"""The report of any fitted tree in one call: estimators, searches, pipelines, model files."""

from __future__ import annotations

import copy
import html
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from softsplit.data.files import Table
from softsplit.data.learning import LabelledRows
from softsplit.estimators.base import CutShortWarning
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.row_reading import read_rows
from softsplit.fitted.conformal import checked_confidence
from softsplit.fitted.model import TreeModel, holder_of
from softsplit.persistence import load_model
from softsplit.report.comparison import walk_path
from softsplit.report.document import render_report
from softsplit.report.groups import group_names
from softsplit.report.number_figures import NumberReport
from softsplit.report.number_page import number_report, render_number_report
from softsplit.report.report_data import PAGE_ROWS, ReportData
from softsplit.report.study import check_training_rows, rows_of
from softsplit.solvers import Budget
from softsplit.support.interruption import never_lost
from softsplit.support.messages import counted, shown, unfit
from softsplit.support.output_files import write_file
from softsplit.training.run import watched
from softsplit.variables import CodedRows
from softsplit.variables.contents import text_of

FRAME_HEIGHT = 800
"""Pixels of the report inside a notebook."""


@dataclass(frozen=True, repr=False)
class Report:
    """A report: ``save`` it, or let a notebook show it.

    Attributes
    ----------
    html : str
        The page, one file without links to anything outside it.
    data : ReportData or NumberReport
        What it was made of: trees, accuracies, rows; of a tree that predicts a number its errors.
    """

    html: str
    data: ReportData | NumberReport

    def __repr__(self) -> str:
        trees = counted(len(getattr(self.data, "trees", (self,))), "tree")
        return f"Report of {trees}; save(path) writes it to a file"

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, as a whole or not at all."""
        place = Path(path)
        write_file(place, self.html.encode("utf-8", errors="replace"))
        return place

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that neither its style nor its names mix with others.

        The frame may run its script and copy lines, and nothing else.
        """
        style = f"width:100%;height:{FRAME_HEIGHT}px;border:1px solid #c9d1d9"
        return (
            f'<iframe sandbox="allow-scripts" style="{style}" title="Report of a tree" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def report(
    model: Any,
    X: Any,
    y: Any = None,
    path: str | Path | None = None,
    *,
    name: str | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    page_rows: int = PAGE_ROWS,
    held_out: tuple[Any, Any] | None = None,
    by: Any = None,
    refer: float = 0.9,
    exposure: Any = None,
) -> Report:
    """The report of a fitted tree: its picture, how good it is on held-out rows, other trees.

    Trees like this one are trained on parts of the rows and judged on the rest, beside plain
    methods; the tree itself is shown as it is. A tree that predicts a number is judged by the
    folds of its ``SoftTreeRegressorCV``, and nothing is trained.

    Parameters
    ----------
    model : fitted classifier or regressor of softsplit, search, pipeline, or model file
        Of a pipeline the last step is a tree, and the rows are those before its first step. A model
        file is given by its path.
    X, y : rows and their classes
        Those that the tree was fitted to. y may be left out if X is a table that holds the target
        and the tree knows its name.
    path : path, optional
        Write the page there.
    name : str, optional
        The name of the data on the page.
    seed, n_jobs : int
    time_limit : float, optional
        Seconds after which the page is made of what is there.
    page_rows : int, default=500
        Rows that the page holds, the columns in use and the class, for the figures of its part
        "Change the tree"; 0 for a page without rows of the table, and without that part.
    held_out : tuple of (X, y), optional
        Rows that the tree was not fitted to, and their classes. The page holds them instead of
        training rows, so that the figures of a changed tree are held-out ones.
    by : str or array of shape (n_samples,), optional
        A column of X, or values for its rows: the page tells its figures for each of their groups.
    refer : float, default=0.9
        Cases whose prediction set at this confidence is not the predicted class alone go to a
        person.
    exposure : array of shape (n_samples,), or name of a column of X, optional
        For a tree of rates.

    Returns
    -------
    Report
        ``report.save(path)``; a notebook shows it by itself.
    """
    if not isinstance(page_rows, int) or page_rows < 0:
        raise unfit("page_rows", page_rows, "must be an integer >= 0")
    if _predicts_number(model):
        for option, value in (("held_out", held_out), ("by", by)):
            if value is not None:
                raise ValueError(f"{option} is for trees that predict classes; leave it out.")
        return _of_number(model, X, y, path, name or "data", exposure)
    if exposure is not None:
        raise ValueError("exposure is for trees that predict a rate; leave it out.")
    table = X
    if isinstance(by, str) and hasattr(X, "columns") and not _asks(model, by) and by in X.columns:
        X = X.drop(columns=by)  # a column to compare by, and no feature
    tree, rows = labelled_rows(model, X, y)
    refer, groups = checked_confidence(refer, "refer"), _groups(by, table, len(rows.y))
    check_training_rows(tree, rows, "X")
    search = model.steps[-1][1] if isinstance(model, Pipeline) else model
    search = search if hasattr(search, "alternatives") else None
    unseen = None if held_out is None else _held_out_rows(model, held_out)
    with never_lost(), watched(tree.verbose, Budget(time_limit=time_limit)) as observer:
        data = walk_path(
            tree, rows, name or "data", seed=seed, n_jobs=n_jobs, time_limit=time_limit,
            say=observer.working, search=search, by=groups, refer=refer, page_rows=page_rows,
            held_out_rows=unseen,
        )  # fmt: skip
        observer.working("drawing the page")
        page = Report(render_report(data), data)
    if data.interrupted:
        said = "interrupted; the report holds what was judged by then."
        warnings.warn(CutShortWarning("report", said, True), stacklevel=2)
    if path is not None:
        page.save(path)
    return page


def _predicts_number(model: Any) -> bool:
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    last = load_model(last) if isinstance(last, str | Path) else last
    tree = getattr(getattr(last, "best_estimator_", last), "tree_", None)
    return isinstance(tree, TreeModel) and tree.numbers is not None


def _of_number(
    model: Any, X: Any, y: Any, path: str | Path | None, name: str, exposure: Any
) -> Report:
    """The report of a tree that predicts a number."""
    if isinstance(model, str | Path):
        model = load_model(model)
    names = None
    if isinstance(model, Pipeline):
        model, X, names = _after_steps(model, X)
    tree = holder_of(model, numbers=True)
    if y is None:
        numbers, target = tree.tree_.numbers, tree.tree_.target
        target = target if numbers.baseline is None else [numbers.per, target]
        if not set(np.atleast_1d(np.array(target, dtype=object))) <= {*getattr(X, "columns", ())}:
            raise ValueError("y is missing: a report needs the numbers of the rows of X.")
        X, y = X.drop(columns=target), X[target]
    if names is not None:
        tree = copy.copy(tree)
        tree.tree_ = tree.tree_.with_names(names)
    data = number_report(model, tree, X, y, name, exposure)
    page = Report(render_number_report(data), data)
    if path is not None:
        page.save(path)
    return page


def _held_out_rows(model: Any, held_out: Any) -> LabelledRows:
    if not isinstance(held_out, tuple) or len(held_out) != 2:
        raise ValueError("held_out must be a tuple (X, y) of rows and their classes.")
    return labelled_rows(model, *held_out, every_class=False)[1]


def _asks(model: Any, name: str) -> bool:
    """Whether a model takes a column of that name."""
    if isinstance(model, str | Path):
        model = load_model(model)
    return name in getattr(model, "feature_names_in_", ())


def _groups(by: Any, X: Any, n_rows: int) -> tuple[str, pd.Categorical] | None:
    """The name of a column, and the group of each row."""
    if by is None:
        return None
    name = by if isinstance(by, str) else str(getattr(by, "name", None) or "groups")
    if isinstance(by, str):
        if by not in getattr(X, "columns", ()):
            raise ValueError(f"by names {shown(by)}, which is not a column of X; give its values.")
        by = X[by]
    if np.shape(by) != (n_rows,):
        raise ValueError(f"by must hold one value for each of the {n_rows} rows with a class.")
    return name, group_names(pd.Series(np.asarray(by)) if not isinstance(by, pd.Series) else by)


def labelled_rows(
    model: Any, X: Any, y: Any = None, *, every_class: bool = True
) -> tuple[SoftTreeClassifier, LabelledRows]:
    """The tree of a model, and rows with their classes as that tree takes them.

    With ``every_class`` there must be rows of every class.
    """
    if isinstance(model, str | Path):
        model = load_model(model)
    names = None
    if isinstance(model, Pipeline):
        model, X, names = _after_steps(model, X)
    tree = holder_of(model)
    if y is None:
        target = tree.tree_.target
        if target is None or target not in getattr(X, "columns", ()):
            raise ValueError("y is missing: a report needs the classes of the rows of X.")
        return tree, rows_of(tree, Table("data", pd.DataFrame(X)), every_class=every_class)
    if names is not None:  # as the steps before it call its features
        tree = copy.copy(tree)
        tree.tree_ = tree.tree_.with_names(names)
    return tree, _rows_with_classes(tree, X, y, every_class)


def _after_steps(pipeline: Pipeline, X: Any) -> tuple[Any, Any, list[str] | None]:
    """The last step of a pipeline, the rows that it sees, and the names they have there."""
    if len(pipeline.steps) == 1:
        return pipeline.steps[-1][1], X, None
    before = pipeline[:-1]
    try:
        names = [str(name) for name in before.get_feature_names_out()]
    except (AttributeError, ValueError, TypeError):  # a step that has no names to give
        names = None
    return pipeline.steps[-1][1], before.transform(X), names


def _rows_with_classes(tree: SoftTreeClassifier, X: Any, y: Any, every_class: bool) -> LabelledRows:
    rows = read_rows(tree, X, whole=True)
    if not isinstance(rows, CodedRows):  # numbers as they are
        coding = replace(tree.tree_.table_coding, named=hasattr(tree, "feature_names_in_"))
        rows = coding.code(rows.astype(np.float64, copy=False))
    labels = np.asarray(y)
    if labels.shape != (len(rows),):
        raise ValueError(f"y must hold one class for each of the {len(rows)} rows of X.")
    known = {text_of(label): label for label in tree.classes_.tolist()}
    texts = [text_of(label) for label in labels.tolist()]
    strange = [
        label for label, text in zip(labels.tolist(), texts, strict=True) if text not in known
    ]
    if strange:
        raise ValueError(f"class {shown(strange[0])} in y is not a class of the model.")
    lost = [known[text] for text in sorted(set(known) - set(texts), key=str)]
    if lost and every_class:
        raise ValueError(f"no row is of class {lost[0]!r}; the report needs rows of every class.")
    target = str(tree.tree_.target or getattr(y, "name", None) or "the class")
    classes = np.array([known[text] for text in texts], dtype=tree.classes_.dtype)
    return LabelledRows(rows, classes, target)
