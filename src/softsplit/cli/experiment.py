"""``softsplit experiment``: run an experiment, see how far it is, make its tables and figures."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from softsplit.experiments.progress import ConsoleProgress
from softsplit.experiments.results import write_plots, write_results
from softsplit.experiments.runner import Summary, run_experiment, summarise
from softsplit.experiments.spec import Spec, load_spec
from softsplit.experiments.store import Store

app = typer.Typer(
    help="Run the paper's experiments, or your own, and make their tables and figures.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="Name of a shipped experiment, or path of a .toml file.")]
StorePath = Annotated[
    Path | None, typer.Option("--store", help="File of results [default: results/NAME.sqlite].")
]
Out = Annotated[Path, typer.Option("--out", help="Folder for the files.")]


@app.command()
def run(
    name: Name,
    store: StorePath = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Processes on this machine.")
    ] = os.cpu_count() or 1,
    dask: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler to use instead.")
    ] = None,
    accept_versions: Annotated[
        bool, typer.Option("--accept-versions", help="Mix rows of different software versions.")
    ] = False,
) -> None:
    """Run every cell that has no result yet; stop and go on as you like."""
    with _sentences():
        spec = load_spec(name)
        with Store(_path(spec, store)) as opened:
            try:
                done = run_experiment(
                    spec,
                    opened,
                    n_jobs=jobs,
                    dask=dask,
                    accept_versions=accept_versions,
                    progress=ConsoleProgress(),
                )
            except KeyboardInterrupt:
                _show(spec, summarise(spec, opened))
                typer.echo("stopped; the same command goes on from here.", err=True)
                raise typer.Exit(130) from None
            _show(spec, done)


@app.command()
def status(name: Name, store: StorePath = None) -> None:
    """How many cells have a result, and of what kind."""
    with _sentences():
        spec = load_spec(name)
        with Store(_existing(spec, store)) as opened:
            _show(spec, summarise(spec, opened))


@app.command()
def table(name: Name, store: StorePath = None, out: Out = Path("results")) -> None:
    """Write the table as CSV, Markdown and LaTeX."""
    with _sentences():
        spec = load_spec(name)
        with Store(_existing(spec, store)) as opened:
            for path in write_results(opened.spec(spec.name), opened, out):
                typer.echo(path)


@app.command()
def plot(name: Name, store: StorePath = None, out: Out = Path("results")) -> None:
    """Draw the figures as SVG."""
    with _sentences():
        spec = load_spec(name)
        with Store(_existing(spec, store)) as opened:
            for path in write_plots(opened.spec(spec.name), opened, out):
                typer.echo(path)


def _path(spec: Spec, store: Path | None) -> Path:
    return store or Path("results") / f"{spec.store_name}.sqlite"


def _existing(spec: Spec, store: Path | None) -> Path:
    path = _path(spec, store)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no store {str(path)!r}; run the experiment first: softsplit experiment run "
            f"{spec.name}."
        )
    return path


def _show(spec: Spec, done: Summary) -> None:
    typer.echo(f"{spec.name}: {done.n_done} of {done.n_cells} cells done")
    for kind, count in sorted(done.statuses.items()):
        typer.echo(f"  {count:6d} {kind}")
    for peer, why in done.skipped.items():
        typer.echo(f"  left out: {peer}, because {why}")


@contextmanager
def _sentences() -> Iterator[None]:
    """An error of the user's is one sentence, not a stack of calls."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        typer.echo(f"softsplit: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    app()
