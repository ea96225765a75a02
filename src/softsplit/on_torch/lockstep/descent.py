"""Spectral proximal gradient steps of many trees, each with a step of its own.

For every tree, with f smooth (batch.py) and g its penalties (penalty.py),

    x+ = prox_{g / alpha}(x - grad f(x) / alpha),    alpha from the last step and change of gradient

(Barzilai and Borwein, 1988), as in solvers/elimination/penalised.py. One evaluation serves all
trees: those whose step is accepted go on, the others shorten theirs and try again with the next.
Trees that have ended leave the batch. On a GPU a round of steps is recorded once as a graph, and
played again without a word from Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from softsplit.on_torch.lockstep.batch import Batch
from softsplit.on_torch.lockstep.penalty import BatchPenalty
from softsplit.on_torch.sums import recordable


@dataclass(frozen=True)
class SpectralOptions:
    """Numbers of spectral proximal gradient steps; the first five as in elimination."""

    look_back: int = 8
    """A step is accepted below the largest of so many last values (nonmonotone line search)."""

    sufficient: float = 1e-4
    """Part of the decrease of the quadratic model that a step must reach."""

    gentlest: float = 1e-8
    """Least curvature alpha of a step."""

    steepest: float = 1e12
    """Largest alpha, at which a step is accepted as it is."""

    first_move: float = 0.2
    """Largest change of a number in the first step."""

    round: int = 25
    """Steps after which trees that have ended leave."""

    recorded: int = 5
    """Steps of a recording, which is played again."""

    smaller: float = 0.8
    """The batch is made anew where so few of its trees are left: to record costs a moment."""


OPTIONS = SpectralOptions()


@dataclass
class LikelihoodState:
    """Where all trees are; every tensor stays where it is, so that steps can be recorded."""

    x: torch.Tensor  # (n_trees, n)
    gradient: torch.Tensor  # (n_trees, n)
    alpha: torch.Tensor  # (n_trees,)
    past: torch.Tensor  # (n_trees, OPTIONS.look_back): the last values of f + g
    lowest: torch.Tensor  # (n_trees,)
    best: torch.Tensor  # (n_trees, n)
    over: torch.Tensor  # (n_trees,), bool

    @classmethod
    def at(cls, batch: Batch, penalty: BatchPenalty, x: torch.Tensor) -> LikelihoodState:
        value, gradient = batch.value_and_gradient(x)
        total = value + penalty.value(batch.weights(x))
        alpha = (
            (gradient.abs().amax(dim=1) / OPTIONS.first_move)
            .clamp(min=OPTIONS.gentlest)
            .to(torch.float64)
        )
        past = torch.full(
            (len(x), OPTIONS.look_back), -torch.inf, dtype=torch.float64, device=x.device
        )
        past[:, 0] = total
        over = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        return cls(x.clone(), gradient, alpha, past, total.clone(), x.clone(), over)

    def of(self, trees: torch.Tensor) -> LikelihoodState:
        """Some of the trees, by their numbers."""
        return LikelihoodState(**{name: part[trees] for name, part in vars(self).items()})


def step(state: LikelihoodState, batch: Batch, penalty: BatchPenalty, tol: float) -> None:
    """One step of all trees, in place."""
    x, gradient, alpha = state.x, state.gradient, state.alpha
    inverse = (1.0 / alpha).to(x.dtype)
    moved = x - gradient * inverse[:, None]
    batch.weights(moved).copy_(penalty.prox(batch.weights(moved), batch.weights(x), 1.0 / alpha))
    value, fresh = batch.value_and_gradient(moved)
    total = value + penalty.value(batch.weights(moved))
    change = moved - x
    size = (change * change).sum(dim=1, dtype=torch.float64)
    enough = total <= state.past.amax(dim=1) - 0.5 * OPTIONS.sufficient * alpha * size
    accepted = (enough | (alpha >= OPTIONS.steepest)) & ~state.over
    curvature = (change * (fresh - gradient)).sum(dim=1, dtype=torch.float64)
    small = change.abs().amax(dim=1) * alpha.clamp(min=1.0) <= tol
    better = accepted & (total < state.lowest)
    pick = accepted[:, None]
    past = torch.cat([total[:, None], state.past[:, :-1]], dim=1)
    state.past.copy_(torch.where(pick, past, state.past))
    state.x.copy_(torch.where(pick, moved, x))
    state.gradient.copy_(torch.where(pick, fresh, gradient))
    spectral = (curvature / size.clamp(min=1e-300)).clamp(OPTIONS.gentlest, OPTIONS.steepest)
    steeper = (4.0 * alpha).clamp(max=OPTIONS.steepest)
    state.alpha.copy_(torch.where(accepted, spectral, steeper))
    state.best.copy_(torch.where(better[:, None], moved, state.best))
    state.lowest.copy_(torch.where(better, total, state.lowest))
    state.over.logical_or_(accepted & (small | (size == 0)))


def _round(
    state: LikelihoodState, batch: Batch, penalty: BatchPenalty, tol: float
) -> Callable[[], None]:
    """A round of steps as a function; those of the kernel are recorded."""

    def steps(count: int) -> None:
        for _ in range(count):
            step(state, batch, penalty, tol)

    if not recordable(batch.pieces, batch.n_branches):
        return partial(steps, OPTIONS.round)
    side: Any = torch.cuda.Stream(state.x.device)
    side.wait_stream(torch.cuda.current_stream(state.x.device))
    with torch.cuda.stream(side):
        steps(1)  # kernels are compiled, and libraries begun, before anything is recorded
    torch.cuda.current_stream(state.x.device).wait_stream(side)
    graph: Any = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        steps(OPTIONS.recorded)

    def play() -> None:
        for _ in range(OPTIONS.round // OPTIONS.recorded):
            graph.replay()

    return play


def descend(
    batch: Batch,
    penalty: BatchPenalty,
    x: torch.Tensor,
    *,
    max_iter: int,
    tol: float,
    decrease: float,
    go_on: Callable[[], bool] = lambda: True,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The lowest point of every tree, its value, and whether the tree has ended by itself.

    A tree ends where a step changes nothing by more than ``tol`` in the units of its gradient, or
    where a round of steps lowers it by less than ``decrease`` of its value.
    """
    best = x.clone()
    state = LikelihoodState.at(batch, penalty, x)
    lowest, ended = state.lowest.clone(), state.over.clone()
    alive = torch.arange(len(x), device=x.device)
    before, play, made = state.lowest.clone(), None, 0
    while made < max_iter and go_on():
        if play is None:
            play = _round(state, batch, penalty, tol)
        play()
        made += OPTIONS.round
        over = state.over | (before - state.lowest <= decrease * state.lowest.abs())
        before = state.lowest.clone()
        state.over.copy_(over)
        left = int((~over).sum())
        if left < OPTIONS.smaller * len(alive) or left == 0:
            best[alive], lowest[alive], ended[alive] = state.best, state.lowest, over
            if left == 0:
                return best, lowest, ended
            stay = torch.nonzero(~over).flatten()
            state, alive, play = state.of(stay), alive[stay], None
            batch, penalty, before = batch.of(stay), penalty.of(stay), before[stay]
    best[alive], lowest[alive], ended[alive] = state.best, state.lowest, state.over
    return best, lowest, ended
