"""The report: one HTML file about a tree and others at other strengths of the penalty.

Of any fitted tree, pipeline or model file, ``softsplit.report(tree, X, y, "tree.html")``; the room
itself can be called, and does what ``softsplit.report.report`` does.

From a table to the file, step by step::

    from pathlib import Path

    from softsplit.data import learn, read_table
    from softsplit.report import fit_tree, render_report, walk_path

    rows = learn(read_table("patients.csv"), "outcome")
    fitted = fit_tree(rows)                               # settings are chosen
    data = walk_path(fitted.tree, rows, "patients", fitted.provenance)  # and others, all judged
    Path("tree.html").write_text(render_report(data), encoding="utf-8")

``fitted.tree`` is a ``SoftTreeClassifier``; ``data.accuracy(data.chosen)`` is its accuracy on
held-out rows, with an interval.
"""

import sys
from types import ModuleType
from typing import Any

from softsplit.estimators.path import assess, path_trees
from softsplit.report.anywhere import Report, report
from softsplit.report.comparison import walk_path
from softsplit.report.document import render_report
from softsplit.report.report_data import ReportData
from softsplit.report.study import FitOptions, Fitted, fit_tree, rows_of
from softsplit.selection.assessment import Assessment

__all__ = [
    "Assessment",
    "FitOptions",
    "Fitted",
    "Report",
    "ReportData",
    "assess",
    "fit_tree",
    "path_trees",
    "render_report",
    "report",
    "rows_of",
    "walk_path",
]


class _CallableRoom(ModuleType):
    """``softsplit.report`` is a package and, to users, a function."""

    def __call__(self, *arguments: Any, **options: Any) -> Report:
        return report(*arguments, **options)


sys.modules[__name__].__class__ = _CallableRoom
