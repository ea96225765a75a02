"""``softsplit vc``: what trees of a given size can express."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from softsplit.cli.console import console, print_json
from softsplit.tree.parameters import MAX_DEPTH

if TYPE_CHECKING:
    from softsplit.capacity import Bound, Summary


def vc(
    depth: Annotated[int, typer.Option(min=1, max=MAX_DEPTH, help="Depth of the tree.")],
    features: Annotated[int, typer.Option(min=1, help="Number of features.")],
    binary: Annotated[bool, typer.Option("--binary", help="Features are 0 or 1.")] = False,
    levels: Annotated[
        int | None,
        typer.Option(min=2, help="Number of equally spaced values of a feature."),
    ] = None,
    hidden_units: Annotated[
        int | None,
        typer.Option(min=1, help="Hidden units of the networks; default: branches of the tree."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="Bound the error on new rows for this many training rows."),
    ] = None,
    training_error: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of wrong training rows.")
    ] = 0.0,
    confidence: Annotated[
        float, typer.Option(help="Confidence of the bound on the error, below 1.")
    ] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Bound the VC dimension of a tree, with reasons, and of other models for comparison."""
    # Here, so that other commands and --help do not wait for it.
    from softsplit.capacity import summarise

    summary = summarise(
        depth,
        features,
        binary,
        levels=levels,
        hidden_units=hidden_units,
        n_samples=samples,
        training_error=training_error,
        confidence=confidence,
    )
    if as_json:
        print_json(summary.to_dict())
    else:
        _print(summary)


def _print(summary: Summary) -> None:
    out = console()
    out.print(f"[bold]{_title(summary)}[/bold]\n")
    out.print(_bounds(summary))
    out.print(
        f"\nThe points of the lower bound are labelled in every way at any steepness above "
        f"{summary.required_steepness:.4g}; softsplit.capacity.shatter builds the trees.\n"
    )
    out.print(_models(summary))
    if summary.generalisation is not None:
        out.print(f"\n[bold]Error on new rows[/bold]: {summary.generalisation.reason}")


def _title(summary: Summary) -> str:
    kinds = {None: "real", 2: "binary"}
    kind = kinds.get(summary.levels, f"{summary.levels}-level")
    plural = "" if summary.n_features == 1 else "s"
    low, high = summary.lower.value, summary.upper.value
    known = f"exactly {low:,}" if low == high else f"from {low:,} to {high:,}"
    return (
        f"Soft tree of depth {summary.depth} on {summary.n_features} {kind} feature{plural}: "
        f"VC dimension {known}"
    )


def _bounds(summary: Summary) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 1, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()

    def add(name: str, bound: Bound | None) -> None:
        if bound is None:
            table.add_row(name, "-", "does not apply to this size, see the lower bound.")
        else:
            table.add_row(name, f"{bound.value:,}", f"{bound.formula}\n{bound.reason}")

    add("lower", summary.lower)
    add("paper", summary.paper)
    add("upper", summary.upper)
    return table


def _models(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("model")
    for name in ("parameters", "at least", "at most"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("at least, at most by")
    for row in summary.models:
        sources = dict.fromkeys((row.lower_from, row.upper_from))
        table.add_row(
            row.model,
            f"{row.parameters:,}",
            f"{row.lower:,}",
            f"{row.upper:,}",
            "; ".join(sources),
        )
    return table
