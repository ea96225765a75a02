"""A numba whose internals have other names than those that the package knows."""

from __future__ import annotations

import sys

from numba.core import caching, codegen, environment, options, typed_passes
from numba.core.dispatcher import Dispatcher
from sklearn.datasets import load_iris

UsualFiles = caching.IndexDataCacheFile


class RenamedFiles:
    """The cache files of one function, without the private names of numba's class."""

    def __init__(self, *arguments, **named):
        self.files = files = UsualFiles(*arguments, **named)
        self.load, self.save, self.flush = files.load, files.save, files.flush


def rename_internals():
    """Take away what numba itself finds elsewhere; before the package is imported."""
    del codegen.JITCodeLibrary, environment.lookup_environment, typed_passes.NativeLowering
    del options.DefaultOptions
    sys.modules["numba.core.event"] = None
    caching.IndexDataCacheFile = RenamedFiles
    Dispatcher.stats = None


def fitted():
    """The objective and some probabilities of a tree; the package is imported here."""
    from softsplit import SoftTreeClassifier

    X, y = load_iris(return_X_y=True)
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0).fit(X, y)
    return [float(tree.objective_), *map(float, tree.predict_proba(X[::30]).ravel())]
