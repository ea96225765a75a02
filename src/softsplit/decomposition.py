"""Decomposition methods: the public name of ``softsplit.solvers.decomposition``."""

from softsplit.solvers.decomposition import *  # noqa: F403
from softsplit.solvers.decomposition import __all__  # noqa: F401

__path__: list[str] = []  # so that old pickles, which name modules in it, reach former_names.py
