"""``softsplit experiment``: run an experiment, see how far it is, make its tables and figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softsplit.cli.console import INTERRUPTED, echo
from softsplit.support.messages import visible

if TYPE_CHECKING:
    from softsplit.experiments.runner import RunSummary

app = typer.Typer(
    help="Run the paper's experiments, or your own, and make their tables and figures.",
    no_args_is_help=True,
)

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of a shipped experiment, or path of a .toml file."),
]
StorePath = Annotated[
    Path | None, typer.Option("--store", help="File of results; default: results/NAME.sqlite.")
]
Out = Annotated[Path, typer.Option("--out", help="Folder for the files.")]


@app.command()
def run(
    name: Name,
    store: StorePath = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Processes; default: one for each core."),
    ] = None,
    dask: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler to use instead.")
    ] = None,
    skip_inner: Annotated[
        bool, typer.Option("--skip-inner", help="Leave out the inner folds of the nested choice.")
    ] = False,
    accept_versions: Annotated[
        bool, typer.Option("--accept-versions", help="Mix rows of different software versions.")
    ] = False,
) -> None:
    """Run every cell that has no result yet; stop and go on as you like."""
    # Here and below, so that other commands and --help do not wait for it.
    from softsplit.experiments.runner import ExperimentProgress, run_experiment, summarise
    from softsplit.experiments.spec import load_spec
    from softsplit.experiments.store import open_store

    spec = load_spec(name)
    if skip_inner:
        spec = spec.model_copy(update={"inner": None})
    with open_store(spec, store, new=True) as opened:
        try:
            done = run_experiment(
                spec,
                opened,
                n_jobs=jobs or os.cpu_count() or 1,
                dask=dask,
                accept_versions=accept_versions,
                progress=ExperimentProgress(),
            )
        except KeyboardInterrupt:
            _show(name, summarise(spec, opened))
            typer.echo("stopped; the same command goes on from here.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        _show(name, done)


@app.command()
def status(name: Name, store: StorePath = None) -> None:
    """How many cells have a result, and of what kind."""
    from softsplit.experiments.runner import summarise
    from softsplit.experiments.spec import load_spec
    from softsplit.experiments.store import open_store

    spec = load_spec(name)
    with open_store(spec, store) as opened:
        _show(name, summarise(spec, opened))


@app.command()
def table(name: Name, store: StorePath = None, out: Out = Path("results")) -> None:
    """Write the table as CSV, Markdown and LaTeX."""
    from softsplit.experiments.results import write_results

    _write(write_results, name, store, out)


@app.command()
def plot(name: Name, store: StorePath = None, out: Out = Path("results")) -> None:
    """Draw the figures as SVG."""
    from softsplit.experiments.results import write_plots

    _write(write_plots, name, store, out)


def _write(write: Callable[..., Iterable[Path]], name: str, store: Path | None, out: Path) -> None:
    """Have files made of the results, and say where each is."""
    from softsplit.experiments.spec import load_spec
    from softsplit.experiments.store import open_store

    spec = load_spec(name)
    with open_store(spec, store) as opened:
        for path in write(opened.same_spec(spec), opened, out):
            echo(visible(path))


def _show(name: str, done: RunSummary) -> None:
    echo(f"{visible(name)}: {done.n_done} of {done.n_cells} cells done")
    for kind, count in sorted(done.statuses.items()):
        echo(f"  {count:6d} {kind}")
    for peer, why in done.skipped.items():
        echo(f"  left out: {peer}, because {why}")
