"""Sparse multivariate randomized classification trees."""

from softsplit.classifier import SoftTreeClassifier
from softsplit.data import load_dataset
from softsplit.report import export_text

__version__ = "0.1.0"

__all__ = ["SoftTreeClassifier", "export_text", "load_dataset"]
