"""What it costs to answer the questions of a tree, case by case.

A case takes one way from the root to a leaf. A column of the table is measured when the first
question on that way needs it, and is paid once:

    cost of leaf l    C_l = sum over the columns v that a question above l asks for of c_v
    cost of a case    C_l at the leaf l where its walk arrives

A tree without a walk answers by the mixture of its leaves. There the cost of a case is its mean
over the ways, sum_l P_l(x) C_l: that of a case which goes left at a branch as often as the gate
says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import visible
from softsplit.tree.ways import needed_in_leaves

NAMED = 3
"""Columns that a sentence names."""


@dataclass(frozen=True)
class CaseCosts:
    """Costs and needs of the leaves of a tree.

    Attributes
    ----------
    names : tuple of str
        The columns of the table that the tree uses.
    costs : array of shape (n_used,)
        What each costs; 1 where nothing was said.
    needed : array of bool, shape (n_used, n_leaves)
        Whether a way to a leaf needs a column.
    """

    names: tuple[str, ...]
    costs: FloatArray
    needed: NDArray[np.bool_]

    @classmethod
    def of(cls, model: TreeModel) -> CaseCosts:
        """Read them off a tree."""
        asked = np.abs(model.parameters.weights) > model.zero_threshold
        if model.walk is not None:
            asked = model.walk.coefficients.T != 0
        columns = np.arange(len(asked))
        if model.coding is not None:
            columns = np.array(model.coding.places, dtype=np.intp)[model.coding.homes]
        needed = needed_in_leaves(columns, len(model.column_names), asked)
        if model.numbers is not None:  # a formula asks for columns too
            weighed, leaves = np.nonzero(model.numbers.functions.slopes)
            needed[columns[weighed], leaves] = True
        used = np.flatnonzero(needed.any(axis=1))
        costs = np.ones(len(used)) if model.column_costs is None else model.column_costs[used]
        names = tuple(model.column_names[j] for j in used)
        return cls(names, costs, needed[used])

    @property
    def of_leaves(self) -> FloatArray:
        """Cost of the way to each leaf, (n_leaves,)."""
        return self.costs @ self.needed

    def sentence(self, shares: FloatArray) -> str:
        """What a case costs on average, from the shares of cases in each leaf, (n_leaves,).

        The columns that add most to it are named.
        """
        part = self.needed @ shares
        order = np.argsort(-self.costs * part, kind="stable")
        named = [j for j in order if self.costs[j] * part[j] > 0][:NAMED]
        needs = [f"{visible(self.names[j])} is needed for {_percent(part[j])}" for j in named[:1]]
        needs += [f"{visible(self.names[j])} for {_percent(part[j])}" for j in named[1:]]
        tail = f": {', '.join(needs)} of cases" if needs else ""
        return f"a case costs {self.costs @ part:.3g} on average{tail}"


def _percent(share: float) -> str:
    rounded = round(100 * share)
    if 0 < rounded < 100 or share in (0.0, 1.0):
        return f"{rounded} %"
    return "less than 1 %" if share < 0.5 else "more than 99 %"


def arriving_shares(model: TreeModel, X: FloatArray) -> FloatArray:
    """Share of each row in each leaf, (n_rows, n_leaves): all of it in one, if there is a walk."""
    if model.walk is None:
        return model.leaf_proba(X)
    return np.eye(model.topology.n_leaves)[model.arrive(X)]


def cost_notes(model: TreeModel) -> list[str]:
    """The sentence for the training rows, where costs are known and leaves know their rows."""
    if model.column_costs is None or model.walk is None:
        return []
    counts = model.walk.counts.sum(axis=0)
    if not counts.sum() > 0:
        return []
    return [CaseCosts.of(model).sentence(counts / counts.sum())]
