"""``softsplit fit --dask``: a table of many files, on a Dask cluster."""

from __future__ import annotations

import glob
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from softsplit.cli.console import INTERRUPTED, echo, heartbeat, print_json, say
from softsplit.cli.options import ON_THIS_MACHINE
from softsplit.cli.outputs import tree_object, write_text
from softsplit.cli.parameters import Known, parse_feature_types, tree_parameters


def refuse(given: Mapping[str, Any], alone: Mapping[str, Any]) -> None:
    """Options that speak of rows or classes in this process; ``alone`` are others of the kind."""
    weights, rates = given["class_weight"], given["min_rate"]
    refused = {
        **alone,
        **{f"--{name}": given[name] for name in ("groups", "cost", "ridge", "steepness")},
        "--loss cost": given["loss"] == "cost",
        "--min-rate CLASS=NUMBER": any("=" in text for text in rates or ()),
        "--curves": given["curves"] not in ("auto", 0),
        "--teacher": given["teacher"],
        "--class-weight CLASS=NUMBER": weights not in (None, [], ["balanced"]),
    }
    for name, value in refused.items():
        if value:
            raise ValueError(
                f"{name} cannot be had together with --dask; use DaskSoftTreeClassifier in Python, "
                "or leave it out."
            )


def fit_dask(
    data: str,
    target: str,
    address: str,
    given: Mapping[str, Any],
    alone: Mapping[str, Any],
    *,
    model: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Choose settings on a sample and train on all rows; return the exit code.

    ``given`` are options of parameters, by their names, ``alone`` others that need one table.
    """
    # 1. What a cluster cannot do is said before anything is loaded.
    refuse(given, alone)
    began = time.perf_counter()
    with heartbeat(quiet, "loading Dask and the solver") as tell:
        from softsplit.data.files import require_columns
        from softsplit.data.learning import split_names
        from softsplit.estimators.base import CutShortWarning
        from softsplit.on_dask.classifiers import DaskSoftTreeClassifierCV, dask_needed
        from softsplit.persistence import dumps_model

        dask_needed()
        tell(f"reading {data}")
        frame = _frame(data)
    # 2. Columns, of which workers are sent only those in use.
    names = list(map(str, frame.columns))
    require_columns(frame, [target], "target")
    feature_types = parse_feature_types(given, names)
    apart = split_names(given["sensitive_only"] or (), names)
    require_columns(frame, feature_types)
    features = frame[[n for n in names if n != target and feature_types.get(n) != "drop"]]
    feature_types = {name: kind for name, kind in feature_types.items() if kind != "drop"}
    # 3. Parameters; the search takes lists of what options give one by one.
    parameters = tree_parameters(given, Known(names))
    del parameters["curves"], parameters["loss"]
    singles = {"depth": "depths", "scale": "scales", "ridge": "ridges", "steepness": "steepnesses"}
    chosen = {many: parameters.pop(single) for single, many in singles.items()}
    chosen |= {"strengths": given["strength"], "scopes": given["scope"]}
    search = DaskSoftTreeClassifierCV(
        feature_types=feature_types or None,
        verbose=int(not quiet),
        **{name: [value] for name, value in chosen.items() if value is not None},
        **parameters,
    )
    # 4. Training; warnings are kept until the line of progress is gone.
    if not quiet:
        where = "a cluster in this process" if address == ON_THIS_MACHINE else address
        say(f"{frame.npartitions} partitions of {data} go to {where}")
    with (
        heartbeat(quiet, "waiting for the cluster") as tell,
        _client(address) as client,
        warnings.catch_warnings(record=True) as caught,
    ):
        tell("training on the cluster")
        warnings.simplefilter("always")
        labels = frame[target].map(str, meta=(target, str))
        sensitive = frame[list(apart)] if apart else None
        search.set_params(client=client).fit(features, labels, sensitive=sensitive)
    cut = [w.message for w in caught if isinstance(w.message, CutShortWarning)]
    for warning in cut:
        say(warning.reason)
    # 5. The file comes first: it is kept whatever happens to the output.
    tree = search.best_estimator_
    if model is not None:
        write_text(model, dumps_model(tree))
        if not quiet:
            say(f"the tree is in {model}")
    _show(search, tree, model, as_json)
    if not quiet:
        say(f"done in {time.perf_counter() - began:.0f} s")
    return INTERRUPTED if any(warning.interrupted for warning in cut) else 0


def _frame(data: str) -> Any:
    """The files that a pattern names, or those of a folder, as a dask frame."""
    import dask.dataframe as dd

    paths = sorted(glob.glob(data)) if not Path(data).is_dir() else sorted(
        str(path) for path in Path(data).iterdir() if path.suffix in (".parquet", ".csv")
    )  # fmt: skip
    if not paths:
        raise FileNotFoundError(f"there is no file {data!r}; give files, a pattern or a folder.")
    endings = {Path(path).suffix.lower() for path in paths}
    if endings == {".parquet"}:
        return dd.read_parquet(paths)
    if endings == {".csv"}:
        return dd.read_csv(paths)
    raise ValueError(
        f"--dask reads Parquet files or CSV files, all of one kind, and {data} has "
        f"{', '.join(sorted(endings))}."
    )


@contextmanager
def _client(address: str) -> Iterator[Any]:
    """The client of the cluster at an address; None for one in this process."""
    if address == ON_THIS_MACHINE:
        yield None
        return
    import distributed

    from softsplit.on_dask.cluster_parts import ANSWER

    try:
        client = distributed.Client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address!r} ({error}); start one with 'dask scheduler' "
            "and give its address."
        ) from None
    with client:
        yield client


def _show(search: Any, tree: Any, model: Path | None, as_json: bool) -> None:
    names = [tree.tree_.column_names[j] for j in tree.selected_features_]
    if as_json:
        print_json(
            {
                **tree_object(tree),
                "features": len(tree.tree_.column_names),
                "objective": float(tree.objective_),
                "chosen_score": float(search.best_score_),
                "interrupted": search.end_ == "interrupted",
                "files": {} if model is None else {"model": str(model)},
            }
        )
        return
    from softsplit.reading.text import export_text

    echo(export_text(tree, max_terms=12) + "\n")
    echo(f"cross-validated accuracy  {100 * search.best_score_:.1f} %, on a sample of the rows")
    echo(f"features used             {len(names)} of {len(tree.tree_.column_names)}")
