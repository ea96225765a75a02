"""Removing branches that decide nothing.

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

from dataclasses import dataclass, replace

import numpy as np

from softsplit.reading.leaf_shares import decision_gains
from softsplit.reading.model import TreeModel
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Topology, TreeParameters
from softsplit.tree.routing import class_probabilities, gate_probabilities


@dataclass(frozen=True, eq=False)
class _Leaf:
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class _Branch:
    weights: FloatArray
    threshold: float
    left: _Leaf | _Branch
    right: _Leaf | _Branch


_Node = _Leaf | _Branch


def simplified_model(model: TreeModel, tol: float, X: FloatArray | None = None) -> TreeModel:
    """The fitted tree without branches that decide nothing; ``X`` are rows in original units."""
    tree, n_classes = model.parameters, len(model.classes)
    features = None if X is None else model.scaled(X).T
    votes = np.eye(n_classes) if model.call_costs is None else decision_gains(model.call_costs).T
    if model.distributions is None:
        return model.with_parameters(simplified(tree, model.steepness, tol, features, votes))
    both = replace(tree, leaf_classes=np.vstack([tree.leaf_classes, model.distributions]))
    votes = np.eye(n_classes, 2 * n_classes)
    found = simplified(both, model.steepness, tol, features, votes)
    classes, shares = np.split(found.leaf_classes, 2)
    return model.with_parameters(replace(found, leaf_classes=classes), shares)


def simplified(
    parameters: TreeParameters,
    steepness: float,
    tol: float = 1e-9,
    features: FloatArray | None = None,
    votes: FloatArray | None = None,
) -> TreeParameters:
    """The smallest complete tree that holds what is left of ``parameters``.

    ``features`` are scaled rows, (n_features, n_rows); votes @ answers say their classes, or the
    answers themselves. Where a complete tree needs a branch above leaves that are one, it gets
    zero weights and equal leaves.
    """
    allowed = tol / parameters.topology.depth
    root = _pruned(_unpacked(parameters, 0), steepness, allowed)
    found = _packed(root, parameters.n_features)
    if features is None:
        return found
    wanted = class_probabilities(parameters, features, steepness)
    votes = np.eye(len(wanted)) if votes is None else votes
    return _without_idle(found, steepness, tol, features, wanted, votes)


def _unpacked(parameters: TreeParameters, node: int) -> _Node:
    n_branches = len(parameters.thresholds)
    if node >= n_branches:
        return _Leaf(parameters.leaf_classes[:, node - n_branches])
    return _Branch(
        parameters.weights[:, node],
        float(parameters.thresholds[node]),
        _unpacked(parameters, 2 * node + 1),
        _unpacked(parameters, 2 * node + 2),
    )


def _pruned(node: _Node, steepness: float, allowed: float) -> _Node:
    if isinstance(node, _Leaf):
        return node
    left, right = (_pruned(side, steepness, allowed) for side in (node.left, node.right))
    if _same(left, right, allowed):
        return left
    if not np.any(node.weights):
        score = np.array([[-node.threshold]])
        to_left, to_right = (float(p[0, 0]) for p in gate_probabilities(score, steepness))
        if to_right <= allowed:
            return left
        if to_left <= allowed:
            return right
        if isinstance(left, _Leaf) and isinstance(right, _Leaf):
            return _Leaf(to_left * left.shares + to_right * right.shares)
    return _Branch(node.weights, node.threshold, left, right)


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


def _height(node: _Node) -> int:
    return 0 if isinstance(node, _Leaf) else 1 + max(_height(node.left), _height(node.right))


def _packed(root: _Node, n_features: int) -> TreeParameters:
    topology = Topology(max(1, _height(root)))
    shares = root
    while isinstance(shares, _Branch):
        shares = shares.left
    weights = np.zeros((n_features, topology.n_branches))
    thresholds = np.zeros(topology.n_branches)
    leaves = np.zeros((len(shares.shares), topology.n_leaves))

    def place(node: _Node, t: int) -> None:
        if t >= topology.n_branches:
            assert isinstance(node, _Leaf)
            leaves[:, t - topology.n_branches] = node.shares
            return
        if isinstance(node, _Branch):
            weights[:, t], thresholds[t] = node.weights, node.threshold
        place(node.left if isinstance(node, _Branch) else node, 2 * t + 1)
        place(node.right if isinstance(node, _Branch) else node, 2 * t + 2)

    place(root, 0)
    return TreeParameters(weights, thresholds, leaves)


def _without_idle(
    parameters: TreeParameters,
    steepness: float,
    tol: float,
    features: FloatArray,
    wanted: FloatArray,
    votes: FloatArray,
) -> TreeParameters:
    """Branches one side of which suffices for all rows; from the leaves up, one at a time."""
    best, predicted = parameters, np.argmax(votes @ wanted, axis=0)
    branch = len(parameters.thresholds) - 1
    while branch >= 0:
        for side in (1, 2):
            trial = _without(best, branch, side, steepness, tol)
            if trial is None:
                continue
            answers = class_probabilities(trial, features, steepness)
            agree = np.array_equal(np.argmax(votes @ answers, axis=0), predicted)
            if agree and np.max(np.abs(answers - wanted), initial=0.0) <= tol:
                best = trial
                # Numbers of branches have changed; what was kept before may be idle now.
                branch = len(best.thresholds)
                break
        branch -= 1
    return best


def _without(
    parameters: TreeParameters, branch: int, side: int, steepness: float, tol: float
) -> TreeParameters | None:
    """The tree with ``branch`` replaced by one of its sides, if it is there."""

    def rebuilt(t: int) -> _Node:
        node = _unpacked(parameters, t)
        if isinstance(node, _Leaf):
            return node
        if t == branch:
            return _unpacked(parameters, 2 * t + side)
        return _Branch(node.weights, node.threshold, rebuilt(2 * t + 1), rebuilt(2 * t + 2))

    target = _unpacked(parameters, branch)
    assert isinstance(target, _Branch)
    if _same(target.left, target.right, 0.0):
        return None
    root = _pruned(rebuilt(0), steepness, tol / parameters.topology.depth)
    return _packed(root, parameters.n_features)
