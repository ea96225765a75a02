"""The report: one self-contained HTML page about a tree and its rivals along the strength path."""

from softsplit.page.assessment import Assessment, assess, path_trees
from softsplit.page.document import render_page
from softsplit.page.subject import Subject

__all__ = ["Assessment", "Subject", "assess", "path_trees", "render_page"]
