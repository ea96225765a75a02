"""How stable a tree is: what comes back when it is trained on other draws of the rows.

Each resample draws as many rows as there are, with replacement (a bootstrap); a tree with the same
settings is trained on it. Counted are features, pairs of features in one tree, and questions: a
question comes back if one of the tree's questions asks for the same features. Answers agree on a
row if two trees predict the same class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from softsplit.estimators.row_reading import read_rows, validated_rows
from softsplit.fitted.model import TreeModel, holder_of
from softsplit.formulations.feature_rules import by_position
from softsplit.reading.outline import outline
from softsplit.solvers import Budget
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import visible

if TYPE_CHECKING:
    import pandas as pd

# Lines of each list that are printed.
SHOWN = 8

# Features in the order of the table.
Asked = tuple[str, ...]


def asked_features(model: TreeModel) -> tuple[Asked, list[Asked]]:
    """Return the features of a tree, and those of each of its questions."""
    names = model.column_names

    def named(features: Sequence[int]) -> Asked:
        columns = np.array(model.table_coding.places)[model.table_coding.homes[list(features)]]
        return tuple(names[j] for j in np.unique(columns))

    questions = [named(q.split.features) for q in outline(model).questions() if q.split is not None]
    return tuple(names[j] for j in model.selected_columns), questions


def resampled_stability(
    estimator: Any, X: Any, y: Any, n_resamples: int, random_state: int, budget: Budget
) -> Stability:
    """Train trees with the settings of a fitted one on resamples of the rows, and compare them."""
    # 1. Rows as the tree reads them: they may have no names, so that rules go by position.
    rows, labels = read_rows(estimator, X, whole=True), np.asarray(y)
    if labels.shape != (len(rows),):
        raise ValueError(f"y must hold one class for each of the {len(rows)} rows of X.")
    base = clone(holder_of(estimator)).set_params(
        n_starts=1, verbose=0, time_limit=None, feature_types=None
    )
    model: TreeModel = estimator.tree_
    base.set_params(**by_position(base.get_params(deep=False), model.column_names))
    # 2. A tree for each resample, and its classes of all rows.
    trees: list[TreeModel] = []
    classes = []
    for number in budget.while_left(range(n_resamples), at_least=2):
        counts = _resampled(labels, np.random.default_rng([random_state, number]))
        tree = clone(base).set_params(random_state=number).fit(rows, labels, sample_weight=counts)
        if tree.end_ == "interrupted":  # the fit has kept its tree; the work is to end
            raise KeyboardInterrupt
        trees.append(tree.tree_)
        tree_rows = validated_rows(tree, rows)  # ``predict`` would warn about rows not drawn
        classes.append(tree.tree_.classes[tree.tree_.predict_index(tree_rows)])
    return Stability.of(model, trees, np.array(classes), estimator.predict(X))


def _resampled(labels: NDArray[Any], rng: np.random.Generator) -> FloatArray:
    """How often each row is drawn in a bootstrap within classes, (n_rows,)."""
    counts = np.zeros(len(labels))
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        np.add.at(counts, rng.choice(own, len(own)), 1.0)
    return counts


@dataclass(frozen=True, repr=False)
class Stability:
    """What recurs in resamples of the rows, each as a share of the resamples.

    Attributes
    ----------
    features, pairs, questions : dict
        Shares by feature, by pair of features, and by the features of a question; largest first.
    own_features, own_questions : tuple
        Those of the tree itself.
    agreement : float
        Mean share of the rows on which the tree of a resample says the class of the tree itself.
    agreement_between : float
        The same between two resamples.
    n_resamples : int
    """

    features: dict[str, float]
    pairs: dict[Asked, float]
    questions: dict[Asked, float]
    own_features: Asked
    own_questions: tuple[Asked, ...]
    agreement: float
    agreement_between: float
    n_resamples: int

    @classmethod
    def of(
        cls, tree: TreeModel, others: Sequence[TreeModel], classes: NDArray[Any], own: NDArray[Any]
    ) -> Stability:
        """Compare a tree with those of resamples.

        ``classes`` (n_resamples, n_rows) are the classes of the rows by the others, ``own``
        (n_rows,) those by the tree itself.
        """
        features: Counter[str] = Counter()
        pairs: Counter[Asked] = Counter()
        questions: Counter[Asked] = Counter()
        for other in others:
            used, asked = asked_features(other)
            features.update(used)
            pairs.update(combinations(used, 2))
            questions.update(set(asked))
        mine = asked_features(tree)
        between = [float(np.mean(a == b)) for a, b in combinations(classes, 2)]
        return cls(
            features=_shares(features, len(others)),
            pairs=_shares(pairs, len(others)),
            questions=_shares(questions, len(others)),
            own_features=mine[0],
            own_questions=tuple(mine[1]),
            agreement=float(np.mean(classes == own)),
            agreement_between=float(np.mean(between)) if between else 1.0,
            n_resamples=len(others),
        )

    def to_frame(self, what: str = "features") -> pd.DataFrame:
        """A table of "features", "pairs" or "questions": shares, and whether the tree has them."""
        import pandas as pd

        tables: dict[str, dict[Any, float]] = {
            "features": self.features, "pairs": self.pairs, "questions": self.questions,
        }  # fmt: skip
        if what not in tables:
            raise ValueError(f"what must be 'features', 'pairs' or 'questions', got {what!r}.")
        shares = tables[what]
        return pd.DataFrame(
            {
                what: [_listed(key) for key in shares],
                "share": list(shares.values()),
                "in_tree": [self.has(what, key) for key in shares],
            }
        )

    def has(self, what: str, key: Any) -> bool:
        """Whether the tree itself has a feature, a pair or a question."""
        if what == "questions":
            return key in self.own_questions
        return {key} <= set(self.own_features) or set(key) <= set(self.own_features)

    def __repr__(self) -> str:
        lines = [
            f"{self.n_resamples} resamples of the rows: the same class on "
            f"{_percent(self.agreement)} of the rows, {_percent(self.agreement_between)} between "
            "resamples"
        ]
        for what in ("features", "pairs", "questions"):
            shares: dict[Any, float] = getattr(self, what)
            lines.append(f"{what} that recur (* in the tree itself):")
            shown = list(shares.items())[:SHOWN]
            lines += [
                f"    {_percent(share):>6} {'*' if self.has(what, key) else ' '} {_listed(key)}"
                for key, share in shown
            ]
            if len(shares) > SHOWN:
                lines.append(f"    and {len(shares) - SHOWN} more")
        return "\n".join(lines)


def _shares(counts: Counter[Any], total: int) -> dict[Any, float]:
    order = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return {key: count / total for key, count in order}


def _listed(key: str | Asked) -> str:
    return visible(key) if isinstance(key, str) else ", ".join(map(visible, key))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
