"""The pass of tensor_pass.py as one kernel, which reads every row once and keeps the rest at hand.

A program takes one piece of rows of one group, a tile at a time: the features of a
tile stay in registers from the scores to the derivative, and so do gates, values and reach. One
warp a program, whose threads hold all features of their rows: scores are sums inside a thread. The
derivative by the splits is a product of (branches, rows) with (rows, features) on tensor units,
three products of half the digits each, which has the precision of float32.

The feature after the last one is 1, so that intercepts are weights. Columns that bend are made of
the values of a row as they are read (bent.py). Each program writes

    splits (branches, features)   mass (leaves)   table (leaves)   value

and these are added up in double precision, in the order of the pieces.
"""

# Tuples that grow are how the kernel language writes loops that are unrolled.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment,misc"

from __future__ import annotations

import torch
import triton
import triton.language as tl

from softsplit.engines.outer import LOGARITHM, SQUARE
from softsplit.on_torch.pieces import DeviceSums, DeviceTree, Pieces

MOST_FEATURES, MOST_BRANCHES = 127, 15
"""Beyond these the registers do not suffice."""


SHALLOW, DEEP = (64, 2), (32, 1)
"""Rows at a time (of 32 features) and warps of a program, for up to two levels and for more: the
fastest of those that were tried on an H200."""

SMALLEST = tl.constexpr(1e-37)
"""Floor under the logarithm in single precision."""

IS_LOGARITHM, IS_SQUARE = tl.constexpr(LOGARITHM), tl.constexpr(SQUARE)


def fits(pieces: Pieces, n_branches: int) -> bool:
    """Whether the kernel takes such trees over such rows."""
    return (
        pieces.features.is_cuda
        and pieces.features.dtype == torch.float32
        and pieces.n_features <= MOST_FEATURES
        and n_branches <= MOST_BRANCHES
    )


@triton.jit
def _gates(score):  # type: ignore[no-untyped-def]
    """Probabilities of going left and right, each accurate however small."""
    decay = tl.exp(-tl.abs(score))
    large = 1.0 / (1.0 + decay)
    small = decay * large
    return tl.where(score >= 0, large, small), tl.where(score >= 0, small, large)


@triton.jit
def _joined(columns, HALF: tl.constexpr):  # type: ignore[no-untyped-def]
    """Each of the first HALF tensors beside the one HALF further on, along a new last axis."""
    pairs = ()
    for i in tl.static_range(HALF):
        pairs = pairs + (tl.join(columns[i], columns[i + HALF]),)
    return pairs


@triton.jit
def _matrix(columns, DEPTH: tl.constexpr, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    """2^DEPTH vectors as a matrix (ROWS, 2^DEPTH): its axes of two are the bits of a column."""
    for i in tl.static_range(DEPTH):
        columns = _joined(columns, 2 ** (DEPTH - 1 - i))
    return tl.reshape(columns[0], (ROWS, 2**DEPTH))


@triton.jit
def _halved(matrices, COUNT: tl.constexpr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    """COUNT matrices (rows, 2 SIZE), each cut into its first and its last SIZE columns."""
    halves = ()
    for i in tl.static_range(COUNT):
        matrix = matrices[i]
        if SIZE == 1:
            a, b = tl.split(matrix)
        else:
            a, b = tl.split(tl.trans(tl.reshape(matrix, (matrix.shape[0], 2, SIZE)), 0, 2, 1))
        halves = halves + (a, b)
    return halves


@triton.jit
def _pass(  # type: ignore[no-untyped-def]
    features, weights, groups, filled, splits, leaves, out, n_features, width,
    homes, shifts, floors, factors, offsets,
    DEPTH: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, PIECE: tl.constexpr,
    OUTER: tl.constexpr, BENT: tl.constexpr,
):  # fmt: skip
    BRANCHES: tl.constexpr = 2**DEPTH - 1
    LEAVES: tl.constexpr = 2**DEPTH
    # 1. The piece, its leaves and the splits; sums stay in registers.
    piece = tl.program_id(0)
    group = tl.load(groups + piece)
    n_rows = tl.load(filled + piece)
    feature, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    first = piece.to(tl.int64) * PIECE
    features += first
    weights += first
    home, known = feature, feature < n_features
    if BENT:
        home = tl.load(homes + feature, mask=known, other=0)
        shift = tl.load(shifts + feature, mask=known, other=0.0)[:, None]
        floor = tl.load(floors + feature, mask=known, other=0.0)[:, None]
        factor = tl.load(factors + feature, mask=known, other=0.0)[:, None]
        offset = tl.load(offsets + feature, mask=known, other=0.0)[:, None]
    at = home[:, None] * width + row[None, :]  # below 2^31: see pieces.py
    given = known[:, None]
    one = tl.where(feature == n_features, 1.0, 0.0)[:, None]

    leaf = ()
    for i in tl.static_range(LEAVES):
        leaf = leaf + (tl.load(leaves + group * LEAVES + i),)
    side = tl.arange(0, LEAVES)
    lines = tl.load(
        splits + side[:, None] * WIDTH + feature[None, :],
        mask=(side < BRANCHES)[:, None], other=0.0,
    )  # fmt: skip
    sums = tl.zeros((LEAVES, WIDTH), dtype=tl.float32)
    mass = tl.zeros((ROWS, LEAVES), dtype=tl.float32)
    table = tl.zeros((ROWS, LEAVES), dtype=tl.float32)
    value = tl.zeros((ROWS,), dtype=tl.float32)
    zero = tl.zeros((ROWS,), dtype=tl.float32)

    for begin in range(0, n_rows, ROWS):
        # 2. Scores and gates of a tile.
        x = tl.load(features + begin + at, mask=given, other=0.0)
        if BENT:
            x = tl.maximum(x - shift, floor) * factor + offset
        x = x + one
        weight = tl.load(weights + begin + row)
        scores = tl.trans(tl.dot(lines, x, input_precision="ieee"))
        columns = (scores,)
        for i in tl.static_range(DEPTH):
            columns = _halved(columns, 2**i, LEAVES // 2 ** (i + 1))
        left, right = (), ()
        for t in tl.static_range(BRANCHES):
            p, q = _gates(columns[t])
            left, right = left + (p,), right + (q,)
        # 3. Upwards: before branch t, values are those of nodes t + 1, t + 2, ...
        values = ()
        for i in tl.static_range(LEAVES):
            values = values + (zero + leaf[i],)
        gains = ()
        for t in tl.static_range(BRANCHES - 1, -1, -1):
            gains = (values[t] - values[t + 1],) + gains
            values = (left[t] * values[t] + right[t] * values[t + 1],) + values
        # 4. At the root: f and f'.
        mixed = values[0]
        if OUTER == IS_LOGARITHM:
            mixed = tl.maximum(mixed, SMALLEST)
            slope = -1.0 / mixed
            value -= weight * tl.log(mixed)
        elif OUTER == IS_SQUARE:
            slope = 2.0 * mixed
            value += weight * mixed * mixed
        else:
            slope = zero + 1.0
            value += weight * mixed
        # 5. Downwards: reach and slopes, and the sums of the tile.
        reach = (weight,)
        slopes = ()
        for t in tl.static_range(BRANCHES):
            going = reach[t] * left[t]
            slopes = slopes + (going * right[t] * gains[t] * slope,)
            reach = reach + (going, reach[t] * right[t])
        arriving, sloped = (), ()
        for i in tl.static_range(LEAVES):
            arriving = arriving + (reach[BRANCHES + i],)
            sloped = sloped + (reach[BRANCHES + i] * slope,)
        table += _matrix(sloped, DEPTH, ROWS)
        mass += _matrix(arriving, DEPTH, ROWS)
        matrix = tl.trans(_matrix(slopes + (zero,), DEPTH, ROWS))
        sums = tl.dot(matrix, tl.trans(x), sums, input_precision="ieee")

    # 6. The sums of the piece.
    SIZE: tl.constexpr = BRANCHES * WIDTH + 2 * LEAVES + 1
    out += tl.program_id(0).to(tl.int64) * SIZE
    inside = (side < BRANCHES)[:, None]
    tl.store(out + side[:, None] * WIDTH + feature[None, :], sums, mask=inside)
    tl.store(out + BRANCHES * WIDTH + LEAVES + side, tl.sum(table, axis=0))
    tl.store(out + BRANCHES * WIDTH + side, tl.sum(mass, axis=0))
    tl.store(out + (SIZE - 1), tl.sum(value))


def fused_sums(pieces: Pieces, tree: DeviceTree, outer: int) -> DeviceSums:
    """The sums of a tree over its rows."""
    n_branches, n_leaves = len(tree.splits), len(tree.splits) + 1
    # Features of a tile: a power of two, and one more than there are.
    width = max(16, int(triton.next_power_of_2(pieces.n_features + 1)))
    rows, warps = SHALLOW if tree.depth <= 2 else DEEP
    splits = torch.nn.functional.pad(tree.splits, (0, width - pieces.n_features - 1))
    end = n_branches * width
    bent = (pieces.weights,) * 5 if pieces.bent is None else pieces.bent.parts
    out = torch.empty((pieces.n_pieces, end + 2 * n_leaves + 1), device=pieces.features.device)
    _pass[(pieces.n_pieces,)](
        pieces.features, pieces.weights, pieces.groups, pieces.filled,
        splits.to(torch.float32).contiguous(), tree.leaves.to(torch.float32).contiguous(), out,
        pieces.n_features, pieces.width, *bent, DEPTH=tree.depth, WIDTH=width,
        ROWS=max(16, rows * 32 // max(width, 32)), PIECE=pieces.piece_rows, OUTER=outer,
        BENT=pieces.bent is not None, num_warps=warps, num_stages=1,
    )  # fmt: skip
    whole = out.sum(dim=0, dtype=torch.float64)
    by_group = pieces.by_group(out[:, end:-1])
    return DeviceSums(
        whole[-1],
        whole[:end].view(n_branches, width)[:, : pieces.n_features + 1],
        by_group[:, :n_leaves],
        by_group[:, n_leaves:],
    )
