"""Other methods, trained and measured on the same folds as our trees.

A peer is a small class: ``fit``, ``predict_proba`` over the classes it was trained on, the features
it uses and the number of nonzero coefficients (a split on one feature counts one). What a peer
needs beside scikit-learn comes with ``softsplit[peers]``; one that is not installed is skipped, and
the reason is kept. ``module:Class`` names a peer of the reader's own.
"""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module, metadata
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from softsplit.experiments.cells import Chain
from softsplit.experiments.context import PreparedFold, accuracy, axis_seed, log_loss, spread
from softsplit.experiments.spec import Spec, load_attribute
from softsplit.experiments.store import CellOutcome
from softsplit.selection.baselines import l1_penalty
from softsplit.support.arrays import FloatArray

INNER_FOLDS = 5
"""Folds by which the settings of other methods are chosen, as those of the trees are."""

TIME_LIMIT = 60
"""Seconds for an exact search over trees, which then returns the best tree so far."""

Labels = NDArray[np.int64]


class Peer(ABC):
    """A method at a given depth; ``y`` holds 0 .. n_classes - 1, each at least once.

    ``deeper``: levels added to the depth of our trees.
    """

    package: ClassVar[str] = "sklearn"
    deeper: ClassVar[int] = 0

    def __init__(self, depth: int, seed: int) -> None:
        self.depth = depth + self.deeper
        self.seed = seed
        self.model: Any = None

    def fit(self, X: FloatArray, y: Labels) -> None:
        self.model = self.build(X, y)
        self.model.fit(X, y)

    @abstractmethod
    def build(self, X: FloatArray, y: Labels) -> Any:
        """An estimator that has not been fitted yet."""

    def predict_proba(self, X: FloatArray) -> FloatArray:
        return self.model.predict_proba(X)

    @abstractmethod
    def splits(self) -> Iterator[int]:
        """The feature of every nonzero coefficient or split, with repetitions."""


def inner_folds(y: Labels, seed: int) -> StratifiedKFold:
    """Inner cross-validation with as many folds as the rarest class allows, two at least."""
    rarest = int(np.bincount(y).min())
    return StratifiedKFold(max(2, min(INNER_FOLDS, rarest)), shuffle=True, random_state=seed)


def inner_nodes(root: Any, children: Callable[[Any], Sequence[Any]]) -> Iterator[Any]:
    """The nodes of a tree that have children."""
    nodes = [root]
    while nodes:
        below = children(node := nodes.pop())
        if below:
            yield node
        nodes += below


def tree_splits(tree: Any) -> Iterator[int]:
    """Features of the splits of a fitted scikit-learn tree."""
    return (int(j) for j in tree.tree_.feature if j >= 0)


class Cart(Peer):
    """CART at the depth of our trees."""

    def build(self, X: FloatArray, y: Labels) -> Any:
        return DecisionTreeClassifier(max_depth=self.depth, random_state=self.seed)

    def splits(self) -> Iterator[int]:
        return tree_splits(self.model)


class PrunedCart(Peer):
    """CART of any depth, its pruning strength chosen by inner cross-validation."""

    def build(self, X: FloatArray, y: Labels) -> Any:
        tree = DecisionTreeClassifier(random_state=self.seed)
        alphas = np.unique(np.maximum(tree.cost_complexity_pruning_path(X, y).ccp_alphas, 0.0))
        chosen = alphas[np.unique(np.linspace(0, len(alphas) - 1, 20).astype(int))]
        return GridSearchCV(tree, {"ccp_alpha": chosen}, cv=inner_folds(y, self.seed))

    def splits(self) -> Iterator[int]:
        return tree_splits(self.model.best_estimator_)


class SparseLogistic(Peer):
    """L1 logistic regression (one model for all classes), its strength by inner CV."""

    def build(self, X: FloatArray, y: Labels) -> Any:
        binary = len(np.unique(y)) == 2
        model = LogisticRegression(
            solver="liblinear" if binary else "saga",
            max_iter=2000,
            tol=1e-4 if binary else 1e-3,
            random_state=self.seed,
            **l1_penalty(),
        )
        grid = {"C": np.logspace(-2, 3, 11)}
        return GridSearchCV(model, grid, cv=inner_folds(y, self.seed))

    def splits(self) -> Iterator[int]:
        return (int(j) for j in np.nonzero(self.model.best_estimator_.coef_)[1])


class Forest(Peer):
    """Random forest, to see what accuracy many trees would reach."""

    def build(self, X: FloatArray, y: Labels) -> Any:
        return RandomForestClassifier(500, random_state=self.seed, n_jobs=1)

    def splits(self) -> Iterator[int]:
        for tree in self.model.estimators_:
            yield from tree_splits(tree)


class Boosting(Peer):
    """Histogram boosting, to see what accuracy many trees would reach."""

    def build(self, X: FloatArray, y: Labels) -> Any:
        return HistGradientBoostingClassifier(random_state=self.seed)

    def splits(self) -> Iterator[int]:
        for trees in self.model._predictors:
            for tree in trees:
                inner = tree.nodes[tree.nodes["is_leaf"] == 0]
                yield from (int(j) for j in inner["feature_idx"])


class Streed(Peer):
    """Optimal axis-parallel tree on features cut at their deciles."""

    package = "pystreed"

    def build(self, X: FloatArray, y: Labels) -> Any:
        streed = import_module("pystreed")
        return streed.STreeDClassifier(
            "accuracy",
            max_depth=self.depth,
            time_limit=TIME_LIMIT,
            random_seed=self.seed,
        )

    def fit(self, X: FloatArray, y: Labels) -> None:
        deciles = np.quantile(X, np.linspace(0.1, 0.9, 9), axis=0)
        cuts = [(j, cut) for j in range(X.shape[1]) for cut in np.unique(deciles[:, j])]
        # A cut that all rows pass says nothing; two values need one cut, between them.
        self.cuts = [(j, cut) for j, cut in cuts if np.any(X[:, j] > cut)]
        super().fit(self._binary(X), y)

    def predict_proba(self, X: FloatArray) -> FloatArray:
        return super().predict_proba(self._binary(X))

    def _binary(self, X: FloatArray) -> FloatArray:
        return np.column_stack([X[:, j] <= cut for j, cut in self.cuts]).astype(np.int32)

    def splits(self) -> Iterator[int]:
        def children(node: Any) -> list[Any]:
            return [] if node.is_leaf_node() else [node.left_child, node.right_child]

        return (self.cuts[n.feature][0] for n in inner_nodes(self.model.get_tree(), children))


class DeeperStreed(Streed):
    """The same, one level deeper."""

    deeper = 1


class ConTree(Peer):
    """Optimal axis-parallel tree on the features as they are."""

    package = "pycontree"

    def build(self, X: FloatArray, y: Labels) -> Any:
        contree = import_module("pycontree")
        return contree.ConTree(max_depth=self.depth, time_limit=TIME_LIMIT)

    def splits(self) -> Iterator[int]:
        def children(node: Any) -> list[Any]:
            return [] if node.is_leaf_node() else [node.get_left(), node.get_right()]

        return (int(n.get_split_feature()) for n in inner_nodes(self.model.tree_, children))


class DeeperConTree(ConTree):
    """The same, one level deeper."""

    deeper = 1


class ObliqueTree(Peer):
    """Greedy tree with splits on pairs of features."""

    package = "obliquetree"

    def build(self, X: FloatArray, y: Labels) -> Any:
        oblique = import_module("obliquetree")
        return oblique.Classifier(
            use_oblique=True, max_depth=self.depth, n_pair=2, random_state=self.seed
        )

    def predict_proba(self, X: FloatArray) -> FloatArray:
        proba = np.asarray(self.model.predict_proba(X), dtype=float)
        return np.column_stack([1.0 - proba, proba]) if proba.ndim == 1 else proba

    def splits(self) -> Iterator[int]:
        def children(node: Any) -> list[Any]:
            return [] if node["is_leaf"] else [node["left"], node["right"]]

        root = import_module("obliquetree.utils").export_tree(self.model)["tree"]
        for node in inner_nodes(root, children):
            features = node["features"] if node["is_oblique"] else [node["feature_idx"]]
            yield from (int(j) for j in features)


class Figs(Peer):
    """A sum of small greedy trees with at most twelve splits in all."""

    package = "imodels"

    def build(self, X: FloatArray, y: Labels) -> Any:
        return import_module("imodels").FIGSClassifier(max_rules=12, random_state=self.seed)

    def splits(self) -> Iterator[int]:
        def children(node: Any) -> list[Any]:
            return [] if node is None or node.left is None else [node.left, node.right]

        for root in self.model.trees_:
            yield from (int(node.feature) for node in inner_nodes(root, children))


PEERS: dict[str, type[Peer]] = {
    "CART-D": Cart,
    "CART-pruned": PrunedCart,
    "LR-L1-CV": SparseLogistic,
    "STreeD-D": Streed,
    "STreeD-D+1": DeeperStreed,
    "ConTree-D": ConTree,
    "ConTree-D+1": DeeperConTree,
    "obliquetree-D": ObliqueTree,
    "FIGS-12": Figs,
    "RandomForest": Forest,
    "HistGB": Boosting,
}


def peer_named(name: str) -> type[Peer]:
    """The class of a peer, or one sentence that says what is missing."""
    if name not in PEERS and ":" not in name:
        raise ValueError(f"peer {name!r} is unknown; there are {', '.join(PEERS)}.")
    return PEERS[name] if name in PEERS else load_attribute(name)


def reason_to_skip(name: str) -> str | None:
    """Why a peer cannot run here; None if it can."""
    package = peer_named(name).package
    try:
        import_module(package)
    except Exception as error:  # a broken package may raise anything
        return f"{package} cannot be imported ({type(error).__name__}: {error})"
    return None


def _version(package: str) -> str:
    """Version of a peer's package: no part of the store's versions, since it may come later."""
    return str(getattr(import_module(package), "__version__", None) or metadata.version(package))


def run_peer(chain: Chain, prepared: PreparedFold, spec: Spec) -> CellOutcome:
    """Fit a peer on a fold and measure it; fit and predict are timed apart."""
    fold = prepared.fold
    seed = axis_seed("peer", spec.seed, chain.dataset, chain.fold, chain.model)
    peer = peer_named(chain.model)(
        prepared.problem.topology.depth, int(seed.generate_state(1)[0]) % 2**31
    )
    labels = np.searchsorted(fold.present, fold.y)
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, UserWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        began = time.perf_counter()
        peer.fit(fold.X, labels)
        fitted = time.perf_counter()
        proba = spread(peer.predict_proba(fold.X_test), fold)
        done = time.perf_counter()
        train = spread(peer.predict_proba(fold.X), fold)
    used = list(peer.splits())
    features, n_features = len(set(used)), fold.X.shape[1]
    return CellOutcome(
        status="FITTED",
        train_accuracy=accuracy(train, fold.y),
        test_accuracy=accuracy(proba, fold.y_test),
        test_log_loss=log_loss(proba, fold.y_test),
        global_sparsity=100.0 * (1 - features / n_features),
        features_used=features,
        nonzeros=len(used),
        message=f"{peer.package} {_version(peer.package)}",
        seconds=fitted - began,
        predict_seconds=done - fitted,
    )
