"""Trees in their simplest form: without branches that decide nothing, earlier classes on the left.

A branch goes if

- what is below it on both sides is the same: equal leaves, or equal subtrees;
- it looks at no feature and sends everything one way; or its sides are leaves, which are mixed;
- rows are given and for all of them one side alone gives the same answers.

Class probabilities move by no more than the tolerance: each removal moves the answer of its node by
at most tolerance / depth, and a path from the root meets at most depth of them. The first two hold
for every input whatever; the third is checked on the rows it was given, classes included.

A tree whose leaves have class shares beside their classes keeps both: leaves are equal if they are
in shares and in classes. Here they stand below one another, as if shares were further classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from softsplit.fitted.leaf_shares import decision_gains
from softsplit.fitted.model import TreeModel
from softsplit.fitted.walk import Walk
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Topology, TreeParameters
from softsplit.tree.routing import gate_probabilities, mixed_values

SAME_SIDES = 1e-9
"""``oriented`` leaves sides alone whose mean classes differ by less than this, or of which one has
a smaller share of the rows: only rounding tells such sides apart."""


@dataclass(frozen=True, eq=False)
class _Leaf:
    shares: FloatArray
    origins: tuple[int, ...]
    """Leaves of the tree as it was that this one stands for."""


@dataclass(frozen=True, eq=False)
class _Branch:
    weights: FloatArray
    threshold: float
    left: _Leaf | _Branch
    right: _Leaf | _Branch
    origin: int
    """The branch of the tree as it was."""


_Node = _Leaf | _Branch


class Pruned(NamedTuple):
    """A pruned tree, and where its branches (-1: padding) and leaves come from."""

    tree: TreeParameters
    branches: tuple[int, ...]
    leaves: tuple[tuple[int, ...], ...]


def simplified_model(model: TreeModel, tol: float, X: FloatArray | None = None) -> TreeModel:
    """The fitted tree without branches that decide nothing; ``X`` are rows in original units.

    The leaves of a walk keep the training rows that arrived there.
    """
    tree, n_classes = model.parameters, len(model.classes)
    features = None if X is None else model.scaled(X).T
    votes = np.eye(n_classes) if model.call_costs is None else decision_gains(model.call_costs).T
    if model.walk is not None:
        return _simplified_walk(model, model.walk, tol, X)
    if model.distributions is None:
        pruned = _simplified(tree, model.steepness, tol, features, votes)
        return _edited(model.with_parameters(pruned.tree), pruned)
    both = replace(tree, leaf_values=np.vstack([tree.leaf_values, model.distributions]))
    votes = np.eye(n_classes, 2 * n_classes)
    pruned = _simplified(both, model.steepness, tol, features, votes)
    classes, shares = np.split(pruned.tree.leaf_values, 2)
    return _edited(model.with_parameters(replace(pruned.tree, leaf_values=classes), shares), pruned)


def _edited(model: TreeModel, pruned: Pruned) -> TreeModel:
    """A pruned tree that knows where the numbers that were set by hand are now."""
    return replace(model, edits=model.edits.moved(pruned.branches, pruned.leaves))


def pruned_model(
    model: TreeModel,
    node: int,
    *,
    side: int | None = None,
    leaf: tuple[FloatArray, int] | None = None,
) -> tuple[TreeModel, tuple[int, ...]]:
    """The tree with a branch replaced: by its left (1) or right (2) side, or by a leaf.

    ``leaf`` has class shares and the position of the predicted class. No other question goes. The
    second result says where each branch was before (-1: padding).
    """
    n_classes, shares = len(model.classes), model.distributions
    below = model.parameters.leaf_values
    below = below if shares is None else np.vstack([below, shares])
    tree = replace(model.parameters, leaf_values=below)

    def rebuilt(t: int) -> _Node:
        root = _unpacked(tree, t)
        if isinstance(root, _Leaf):
            return root
        if t == node and side is not None:
            return rebuilt(2 * t + side)
        if t == node:
            assert leaf is not None
            values = leaf[0]
            if shares is not None:
                values = np.concatenate([np.eye(n_classes)[leaf[1]], values])
            return _Leaf(values, tuple(tree.topology.leaves_below(t)))
        left, right = rebuilt(2 * t + 1), rebuilt(2 * t + 2)
        if not np.any(root.weights) and _same(left, right, 0.0):  # it pads a leaf
            return _merged(left, right)
        return replace(root, left=left, right=right)

    pruned = _packed(rebuilt(0), tree.n_features)
    classes = pruned.tree.leaf_values[:n_classes]
    kept = None if shares is None else pruned.tree.leaf_values[n_classes:]
    small = _edited(model.with_parameters(replace(pruned.tree, leaf_values=classes), kept), pruned)
    if model.walk is None:
        return small, pruned.branches
    walk = _pruned_walk(model.walk, pruned)
    if leaf is not None:
        whole = set(tree.topology.leaves_below(node))
        own = [n for n, origins in enumerate(pruned.leaves) if whole & set(origins)]
        walk.classes[own] = leaf[1]
    return replace(small, walk=walk), pruned.branches


def _simplified_walk(model: TreeModel, walk: Walk, tol: float, X: FloatArray | None) -> TreeModel:
    """The same for a tree that predicts by its walk; equal leaves have equal classes."""
    n_classes = len(model.classes)
    features = None if X is None else model.scaled(X).T

    def agrees(pruned: Pruned) -> bool:
        small = _pruned_walk(walk, pruned)
        return X is None or np.array_equal(
            small.classes[small.leaves(X, model.scaling)], model.predict_index(X)
        )

    own = np.eye(n_classes)[:, walk.classes]
    both = replace(model.parameters, leaf_values=np.vstack([model.parameters.leaf_values, own]))
    votes = np.zeros((1, 2 * n_classes))  # classes are compared by ``agrees``
    pruned = _simplified(both, model.steepness, tol, features, votes, agrees)
    parameters = replace(pruned.tree, leaf_values=pruned.tree.leaf_values[:n_classes])
    small = replace(model.with_parameters(parameters), walk=_pruned_walk(walk, pruned))
    return _edited(small, pruned)


def _pruned_walk(walk: Walk, pruned: Pruned) -> Walk:
    """The walk of a pruned tree; where a leaf was padded, rows go left."""
    kept = np.array(pruned.branches)
    padded = kept < 0
    coefficients = np.where(padded[:, None], 0.0, walk.coefficients[kept])
    thresholds = np.where(padded, -1.0, walk.thresholds[kept])
    counts, seen = np.zeros((len(walk.counts), len(pruned.leaves))), set()
    for leaf, origins in enumerate(pruned.leaves):
        new = [origin for origin in origins if origin not in seen]
        counts[:, leaf] = walk.counts[:, new].sum(axis=1)
        seen.update(new)
    return Walk(
        coefficients,
        thresholds,
        walk.upwards[kept] | padded,
        walk.ranked[kept] & ~padded,
        counts,
        walk.classes[[origins[0] for origins in pruned.leaves]],
    )


def simplified(parameters: TreeParameters, steepness: float, tol: float = 1e-9) -> TreeParameters:
    """The smallest complete tree that holds what is left of ``parameters``.

    Where a complete tree needs a branch above leaves that are one, it gets zero weights and equal
    leaves.
    """
    return _simplified(parameters, steepness, tol).tree


def _simplified(
    parameters: TreeParameters,
    steepness: float,
    tol: float,
    features: FloatArray | None = None,
    votes: FloatArray | None = None,
    agrees: Callable[[Pruned], bool] = lambda pruned: True,
) -> Pruned:
    """As ``simplified``, and without branches that some rows do not need.

    ``features`` are these rows in scaled units, (n_features, n_rows); votes @ answers say their
    classes, or the answers themselves. ``agrees`` is a further condition on trees without a branch.
    """
    allowed = tol / parameters.topology.depth
    pruned = _packed(_pruned(_unpacked(parameters, 0), steepness, allowed), parameters.n_features)
    if features is None:
        return pruned
    wanted = mixed_values(parameters, features, steepness)
    votes = np.eye(len(wanted)) if votes is None else votes
    return _without_idle(pruned, steepness, tol, features, wanted, votes, agrees)


def _unpacked(parameters: TreeParameters, node: int, known: Pruned | None = None) -> _Node:
    n_branches = len(parameters.thresholds)
    if node >= n_branches:
        leaf = node - n_branches
        origins = (leaf,) if known is None else known.leaves[leaf]
        return _Leaf(parameters.leaf_values[:, leaf], origins)
    return _Branch(
        parameters.weights[:, node],
        float(parameters.thresholds[node]),
        _unpacked(parameters, 2 * node + 1, known),
        _unpacked(parameters, 2 * node + 2, known),
        node if known is None else known.branches[node],
    )


def _pruned(node: _Node, steepness: float, allowed: float) -> _Node:
    if isinstance(node, _Leaf):
        return node
    left, right = (_pruned(side, steepness, allowed) for side in (node.left, node.right))
    if _same(left, right, allowed):
        return _merged(left, right)
    if not np.any(node.weights):  # all rows have the same gate
        score = np.array([[-node.threshold]])
        to_left, to_right = (float(p[0, 0]) for p in gate_probabilities(score, steepness))
        if to_right <= allowed:
            return left
        if to_left <= allowed:
            return right
        if isinstance(left, _Leaf) and isinstance(right, _Leaf):
            return _Leaf(
                to_left * left.shares + to_right * right.shares, left.origins + right.origins
            )
    return _Branch(node.weights, node.threshold, left, right, node.origin)


def _same(a: _Node, b: _Node, allowed: float) -> bool:
    """Equal subtrees; leaves may differ by ``allowed``."""
    if isinstance(a, _Leaf) and isinstance(b, _Leaf):
        return bool(np.max(np.abs(a.shares - b.shares)) <= allowed)
    if isinstance(a, _Leaf) or isinstance(b, _Leaf):
        return False
    return (
        np.array_equal(a.weights, b.weights)
        and a.threshold == b.threshold
        and _same(a.left, b.left, allowed)
        and _same(a.right, b.right, allowed)
    )


def _merged(a: _Node, b: _Node) -> _Node:
    """One of two equal subtrees, whose leaves stand for those of both."""
    if isinstance(a, _Leaf) and isinstance(b, _Leaf):
        return _Leaf(a.shares, a.origins + b.origins)
    assert isinstance(a, _Branch) and isinstance(b, _Branch)
    return replace(a, left=_merged(a.left, b.left), right=_merged(a.right, b.right))


def _height(node: _Node) -> int:
    return 0 if isinstance(node, _Leaf) else 1 + max(_height(node.left), _height(node.right))


def _packed(root: _Node, n_features: int) -> Pruned:
    topology = Topology(max(1, _height(root)))
    shares = root
    while isinstance(shares, _Branch):
        shares = shares.left
    weights = np.zeros((n_features, topology.n_branches))
    thresholds = np.zeros(topology.n_branches)
    leaves = np.zeros((len(shares.shares), topology.n_leaves))
    branches = [-1] * topology.n_branches
    origins: list[tuple[int, ...]] = [()] * topology.n_leaves

    # Nodes take the places of a complete tree; above a leaf that ends early branches are padding.
    def place(node: _Node, t: int) -> None:
        if t >= topology.n_branches:
            assert isinstance(node, _Leaf)
            leaves[:, t - topology.n_branches] = node.shares
            origins[t - topology.n_branches] = node.origins
            return
        if isinstance(node, _Branch):
            weights[:, t], thresholds[t] = node.weights, node.threshold
            branches[t] = node.origin
        place(node.left if isinstance(node, _Branch) else node, 2 * t + 1)
        place(node.right if isinstance(node, _Branch) else node, 2 * t + 2)

    place(root, 0)
    return Pruned(TreeParameters(weights, thresholds, leaves), tuple(branches), tuple(origins))


def _without_idle(
    pruned: Pruned,
    steepness: float,
    tol: float,
    features: FloatArray,
    wanted: FloatArray,
    votes: FloatArray,
    agrees: Callable[[Pruned], bool],
) -> Pruned:
    """Branches one side of which suffices for all rows; from the leaves up, one at a time."""
    # From the last branch up: what is below a branch has been tried before it.
    best, predicted = pruned, np.argmax(votes @ wanted, axis=0)
    branch = len(pruned.branches) - 1
    while branch >= 0:
        for side in (1, 2):
            trial = _without(best, branch, side, steepness, tol)
            if trial is None:
                continue
            answers = mixed_values(trial.tree, features, steepness)
            agree = np.array_equal(np.argmax(votes @ answers, axis=0), predicted)
            near = np.max(np.abs(answers - wanted), initial=0.0) <= tol
            if agree and near and agrees(trial):
                best = trial
                # Numbers of branches have changed; what was kept before may be idle now.
                branch = len(best.branches)
                break
        branch -= 1
    return best


def _without(pruned: Pruned, branch: int, side: int, steepness: float, tol: float) -> Pruned | None:
    """The tree with ``branch`` replaced by one of its sides, if it is there."""
    parameters = pruned.tree

    def rebuilt(t: int) -> _Node:
        node = _unpacked(parameters, t, pruned)
        if isinstance(node, _Leaf):
            return node
        if t == branch:
            return _unpacked(parameters, 2 * t + side, pruned)
        return replace(node, left=rebuilt(2 * t + 1), right=rebuilt(2 * t + 2))

    target = _unpacked(parameters, branch, pruned)
    assert isinstance(target, _Branch)
    if _same(target.left, target.right, 0.0):
        return None
    root = _pruned(rebuilt(0), steepness, tol / parameters.topology.depth)
    return _packed(root, parameters.n_features)


# --- which side is on the left --------------------------------------------------------------------


def oriented(parameters: TreeParameters, mass: FloatArray) -> TreeParameters:
    """The same tree with the side of earlier classes on the left of every branch.

    All texts and pictures show the tree that way round, and no side flips along a path of trees.

    Parameters
    ----------
    mass : array of shape (n_classes, n_leaves)
        Weight of the training rows of each class that reach each leaf.
    """
    n_branches = len(parameters.thresholds)
    counts = np.hstack([np.zeros((len(mass), n_branches)), mass])
    for t in reversed(range(n_branches)):
        counts[:, t] = counts[:, 2 * t + 1] + counts[:, 2 * t + 2]
    rows = counts.sum(axis=0)
    # The mean class of the rows at each node says which side belongs on the left.
    position = np.arange(len(counts)) @ counts / np.maximum(rows, 1e-300)
    order, flips = list(range(2 * n_branches + 1)), np.ones(n_branches)
    for t in range(n_branches):
        # The two sides change places if enough rows reach both, and the right has earlier classes.
        left, right = 2 * order[t] + 1, 2 * order[t] + 2
        reached = min(rows[left], rows[right]) > SAME_SIDES * rows[0]
        if reached and position[left] > position[right] + SAME_SIDES:
            flips[t] = -1.0
            left, right = right, left
        order[2 * t + 1], order[2 * t + 2] = left, right
    branches, leaves = order[:n_branches], [node - n_branches for node in order[n_branches:]]
    return TreeParameters(
        weights=parameters.weights[:, branches] * flips + 0.0,  # -0.0 becomes 0.0
        thresholds=parameters.thresholds[branches] * flips + 0.0,
        leaf_values=parameters.leaf_values[:, leaves],
    )
