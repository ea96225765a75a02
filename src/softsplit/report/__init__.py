"""Fitted trees as people read them."""

from softsplit.report.text import export_markdown, export_text

__all__ = ["export_markdown", "export_text"]
