"""Pictures of trees, paths and starts: the public name of ``softsplit.report.plots``."""

from softsplit.report.plots import *  # noqa: F403
from softsplit.report.plots import __all__  # noqa: F401

__path__: list[str] = []  # old pickles name modules in it: see former_names.py
