"""The report: one self-contained HTML page about a tree and its rivals along the strength path."""

from softsplit.estimators.assessment import assess, path_trees
from softsplit.report.document import render_page
from softsplit.report.subject import Subject
from softsplit.selection.assessment import Assessment

__all__ = ["Assessment", "Subject", "assess", "path_trees", "render_page"]
