"""Steps of limited memory along the faces of the penalties, for many trees at once.

Each tree goes its own way as in solvers/active_set/descent.py: the direction is - P H P
subgradient, with P the projection on its face and H made of its last steps and changes of the
gradient, begun from the inverse Gram matrix of its rows. One evaluation serves all trees: those
whose step lowers the objective enough take it, the others shorten theirs and try again with the
next. All that a tree knows is in its lines of ``FaceState``, so that trees can leave, and steps be
recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from softsplit.on_torch.lockstep.cost import CostBatch, Rates
from softsplit.on_torch.lockstep.faces import Faces
from softsplit.on_torch.lockstep.penalty import BatchPenalty
from softsplit.on_torch.sums import recordable


@dataclass(frozen=True)
class StepOptions:
    """Numbers of the steps of limited memory, as in solvers/active_set where not said otherwise."""

    memory: int = 8
    """Steps that are kept."""

    sufficient: float = 1e-4
    """Part of the decrease by the slope that a step must reach (Armijo)."""

    first_move: float = 0.1
    """Largest change of a number while no curvature is known."""

    most_cuts: int = 10
    """How often a step is shortened; half as often as there, since all trees wait."""

    curved: float = 1e-8
    """Curvature of a step, relative to the sizes of step and change, from which it is kept."""

    recorded: int = 5
    """Steps of a recording, which is played again."""


OPTIONS = StepOptions()

INVISIBLE = {torch.float32: 1e-9, torch.float64: 1e-15}
"""A step that promises less than this part of the objective cannot be told from rounding."""


@dataclass(frozen=True)
class FaceLimits:
    """When the descent of a tree ends."""

    tol: torch.Tensor  # (n_trees,): largest entry of the subgradient
    decrease: float  # part of the objective below which a step counts as stalled
    patience: int  # stalled steps in a row

    def of(self, trees: torch.Tensor) -> FaceLimits:
        return FaceLimits(self.tol[trees], self.decrease, self.patience)


@dataclass
class FaceState:
    """Where all trees are; every tensor stays where it is, so that steps can be recorded."""

    theta: torch.Tensor  # (n_trees, n_branches, n_features + 1)
    gradient: torch.Tensor  # the same: that of the smooth part
    value: torch.Tensor  # (n_trees,), double: the objective with rate terms
    mass: torch.Tensor  # (n_trees, n_classes, n_leaves), double
    leaves: torch.Tensor  # the same, in the precision of theta
    multipliers: torch.Tensor  # (n_trees, n_classes), double
    weight: torch.Tensor  # (n_trees,), double: that of the rate terms
    steps: torch.Tensor  # (n_trees, memory, n): the last one last
    changes: torch.Tensor  # the same
    inverses: torch.Tensor  # (n_trees, memory): 1 / (step . change), 0 where there is none
    length: torch.Tensor  # (n_trees,): part of a whole step that is tried
    cuts: torch.Tensor  # (n_trees,)
    stalled: torch.Tensor  # (n_trees,)
    over: torch.Tensor  # (n_trees,), bool

    @classmethod
    def at(
        cls, batch: CostBatch, penalty: BatchPenalty, theta: torch.Tensor, rates: Rates
    ) -> FaceState:
        n_trees, dtype, device = len(theta), theta.dtype, theta.device
        pairs = torch.zeros((n_trees, OPTIONS.memory, theta[0].numel()), dtype=dtype, device=device)
        none = torch.zeros(n_trees, dtype=dtype, device=device)
        whole = none.to(torch.float64)
        made = cls(
            theta.clone(), torch.zeros_like(theta), whole, rates.leaves.to(torch.float64),
            rates.leaves.clone(), rates.multipliers.clone(), rates.weight.clone(),
            pairs, pairs.clone(), pairs[:, :, 0].clone(), none + 1.0, none.clone(), none.clone(),
            none > 0,
        )  # fmt: skip
        made.look(batch, penalty)
        return made

    @property
    def rates(self) -> Rates:
        return Rates(self.leaves, self.multipliers, self.weight)

    def of(self, trees: torch.Tensor) -> FaceState:
        """Some of the trees, by their numbers."""
        return FaceState(**{name: part[trees] for name, part in vars(self).items()})

    def put(self, trees: torch.Tensor, others: FaceState) -> None:
        """Put the lines of ``others`` in the place of those of some trees."""
        for name, part in vars(self).items():
            part[trees] = getattr(others, name)

    def look(self, batch: CostBatch, penalty: BatchPenalty) -> None:
        """Evaluate all trees where they are: their leaves or multipliers have changed."""
        value, gradient, mass = batch.value_and_gradient(self.theta, self.rates)
        self.value.copy_(value + penalty.value(self.theta[..., :-1]))
        self.gradient.copy_(gradient)
        self.mass.copy_(mass)

    def begin(self, trees: torch.Tensor) -> None:
        """Let the descents of some trees, by flags, begin anew with the curvature they know."""
        self.length.masked_fill_(trees, 1.0)
        self.cuts.masked_fill_(trees, 0.0)
        self.stalled.masked_fill_(trees, 0.0)
        self.over.logical_and_(~trees)


def direction(state: FaceState, faces: Faces, metric: torch.Tensor) -> torch.Tensor:
    """- P H P slope by the two-loop recursion; ``metric`` (n_trees, n_features + 1, the same)."""
    shape = state.theta.shape
    vector = faces.project(faces.slope).flatten(1)
    shares: list[torch.Tensor] = []
    for k in range(OPTIONS.memory - 1, -1, -1):
        share = (state.steps[:, k] * vector).sum(dim=1) * state.inverses[:, k]
        vector = torch.addcmul(vector, state.changes[:, k], share[:, None], value=-1.0)
        shares.append(share)
    last = state.changes[:, -1]
    curved = (last * torch.matmul(last.view(shape), metric).flatten(1)).sum(dim=1)
    known = state.inverses[:, -1]
    scale = torch.where(known > 0, 1.0 / (known * curved).clamp(min=1e-30), torch.ones_like(curved))
    found = -scale[:, None] * torch.matmul(vector.view(shape), metric).flatten(1)
    for k in range(OPTIONS.memory):
        share = shares[OPTIONS.memory - 1 - k]
        back = (state.changes[:, k] * found).sum(dim=1) * state.inverses[:, k]
        found = torch.addcmul(found, state.steps[:, k], (-share - back)[:, None])
    found = faces.project(found.view(shape))
    # A weight leaves zero only the way that lowers the objective.
    back = (state.theta == 0) & (faces.slope * found > 0)
    back[..., -1] = False
    return found.masked_fill(back, 0.0)


def step(
    state: FaceState,
    batch: CostBatch,
    penalty: BatchPenalty,
    metric: torch.Tensor,
    limits: FaceLimits,
) -> None:
    """One step of all trees, in place."""
    theta = state.theta
    faces = Faces.at(theta, state.gradient, penalty)
    way = direction(state, faces, metric)
    flat = faces.slope.abs().amax(dim=(1, 2)) <= limits.tol
    known = state.inverses.amax(dim=1) > 0
    first = (OPTIONS.first_move / way.abs().amax(dim=(1, 2)).clamp(min=1e-30)).clamp(max=1.0)
    length = state.length * torch.where(known, torch.ones_like(first), first)
    moved = faces.trial(theta, length[:, None, None] * way, penalty)
    change = moved - theta
    gain = (faces.slope * change).sum(dim=(1, 2), dtype=torch.float64)
    value, fresh, mass = batch.value_and_gradient(moved, state.rates)
    value = value + penalty.value(moved[..., :-1])
    fall = state.value - value
    taken = (fall > 0) & (fall >= -OPTIONS.sufficient * gain.clamp(max=0.0)) & ~state.over & ~flat
    small = fall <= limits.decrease * value.abs()
    # The minimum of the parabola through both values and the slope, kept within sight.
    shorter = (0.5 * gain / (gain + fall).clamp(max=-1e-300)).clamp(0.1, 0.5)
    shorter = torch.where((gain < 0) & (fall <= 0), shorter, torch.full_like(shorter, 0.1))
    tiny = gain.abs() <= INVISIBLE[theta.dtype] * state.value.abs()
    stuck = ~taken & (tiny | (gain >= 0) | (state.cuts >= OPTIONS.most_cuts))
    _learn(state, taken, change, fresh - state.gradient)
    state.inverses.masked_fill_(stuck[:, None], 0.0)
    pick = taken[:, None, None]
    state.theta.copy_(torch.where(pick, moved, theta))
    state.gradient.copy_(torch.where(pick, fresh, state.gradient))
    state.mass.copy_(torch.where(pick, mass, state.mass))
    state.value.copy_(torch.where(taken, value, state.value))
    state.stalled.copy_(
        torch.where(taken, torch.where(small, state.stalled + 1, 0.0), state.stalled)
    )
    anew = taken | stuck
    state.length.copy_(torch.where(anew, 1.0, state.length * shorter.to(theta.dtype)))
    state.cuts.copy_(torch.where(anew, 0.0, state.cuts + 1.0))
    ended = flat | (stuck & ~known) | (state.stalled >= limits.patience)
    state.over.logical_or_(ended)


def _learn(
    state: FaceState, taken: torch.Tensor, change: torch.Tensor, turned: torch.Tensor
) -> None:
    """Keep the steps that were taken and show positive curvature."""
    made, turn = change.flatten(1), turned.flatten(1)
    curvature = (made * turn).sum(dim=1)
    sizes = (made * made).sum(dim=1).sqrt() * (turn * turn).sum(dim=1).sqrt()
    kept = taken & (curvature > OPTIONS.curved * sizes) & (curvature > 1e-30)
    for held, new in ((state.steps, made), (state.changes, turn)):
        shifted = torch.cat([held[:, 1:], new[:, None]], dim=1)
        held.copy_(torch.where(kept[:, None, None], shifted, held))
    shifted = torch.cat([state.inverses[:, 1:], (1.0 / curvature)[:, None]], dim=1)
    state.inverses.copy_(torch.where(kept[:, None], shifted, state.inverses))


def steps_of(
    state: FaceState,
    batch: CostBatch,
    penalty: BatchPenalty,
    metric: torch.Tensor,
    limits: FaceLimits,
) -> Callable[[], None]:
    """A few steps as a function; those of the kernel are recorded, and played without Python."""

    def steps(count: int) -> None:
        for _ in range(count):
            step(state, batch, penalty, metric, limits)

    if not recordable(batch.pieces, state.theta.shape[1]):
        return partial(steps, OPTIONS.recorded)
    side: Any = torch.cuda.Stream(state.theta.device)
    side.wait_stream(torch.cuda.current_stream(state.theta.device))
    with torch.cuda.stream(side):
        steps(1)  # kernels are compiled, and libraries begun, before anything is recorded
    torch.cuda.current_stream(state.theta.device).wait_stream(side)
    graph: Any = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        steps(OPTIONS.recorded)
    play: Callable[[], None] = graph.replay
    return play
