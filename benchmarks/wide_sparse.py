"""A wide sparse table beside L1 logistic regression: accuracy, processor time and memory.

    python benchmarks/wide_sparse.py [--rows 20000] [--columns 50000] [--density 0.001] [--cv]

Columns are words: most of them are noise of the given density. Twelve are more frequent and decide
the class, by a sum in which one word counts only beside another. A fifth of the rows is new.
"""

from __future__ import annotations

import resource
import time
import warnings

import numpy as np
import scipy.sparse
from common import arguments
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV

WORDS = 12


def table(rows: int, columns: int, density: float, seed: int):
    """Counts of words, and classes."""
    rng = np.random.default_rng(seed)
    noise = scipy.sparse.random(rows, columns - WORDS, density, random_state=rng)
    noise.data = rng.poisson(0.3, noise.nnz) + 1.0
    words = rng.poisson(0.05, (rows, WORDS)).astype(float)
    effect = np.linspace(3.0, 1.0, WORDS) * np.where(np.arange(WORDS) % 2, -1, 1)
    score = words @ effect + 4.0 * (words[:, 0] > 0) * (words[:, 1] > 0)
    y = (score + rng.logistic(0, 0.5, rows) > 0.2).astype(int)
    order = rng.permutation(columns)
    X = scipy.sparse.hstack([scipy.sparse.csr_matrix(words), noise]).tocsc()[:, order].tocsr()
    return X, y, np.flatnonzero(order < WORDS)


def memory() -> float:
    """Largest memory of the process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    given = arguments(
        __doc__,
        rows=(20000, ""),
        columns=(50000, ""),
        density=(0.001, ""),
        seed=(0, ""),
        cv=(False, ""),
    )
    X, y, words = table(given.rows, given.columns, given.density, given.seed)
    train, test = slice(0, 4 * given.rows // 5), slice(4 * given.rows // 5, None)
    print(f"{X.shape}, {X.nnz:,} numbers, dense {8e-6 * X.shape[0] * X.shape[1]:,.0f} MB")
    SoftTreeClassifier(n_starts=1, random_state=0).fit(X[:500, :40].toarray(), y[:500])
    before = memory()
    made = SoftTreeClassifierCV if given.cv else SoftTreeClassifier
    began = time.process_time()
    tree = made(random_state=0).fit(X[train], y[train])
    spent = time.process_time() - began
    found = np.isin(tree.selected_features_, words).sum()
    print(
        f"tree: {100 * tree.score(X[test], y[test]):.1f} % right, "
        f"{len(tree.selected_features_)} columns ({found} of {WORDS} that matter), {spent:.1f} s, "
        f"{memory() - before:,.0f} MB more than before"
    )
    screening = getattr(tree, "screening_", None)
    if screening is None:
        print("so small a table is trained as a dense one: nothing was screened.")
    else:
        print(
            f"{len(screening.columns)} columns in the working set, {screening.rounds} rounds, "
            f"complete {screening.complete}"
        )
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = LogisticRegression(penalty="l1", solver="liblinear")
        peer = GridSearchCV(plain, {"C": 10.0 ** np.arange(-2, 2)}, cv=3).fit(X[train], y[train])
    used = np.count_nonzero(peer.best_estimator_.coef_)
    right = 100 * peer.score(X[test], y[test])
    spent = time.process_time() - began
    print(f"L1 logistic regression: {right:.1f} % right, {used} columns, {spent:.1f} s")


if __name__ == "__main__":
    main()
