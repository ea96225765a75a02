"""``softsplit fit``: fit a tree to a table."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import INTERRUPTED, echo, heartbeat, print_json, say
from softsplit.cli.inputs import (
    OF_TABLE,
    class_weights,
    column_rules,
    cost_matrix,
    fairness_of,
    given_options,
    grouped,
    groups_by,
    minimum_rates,
    monotone_effects,
    named_columns,
    option_advice,
    rate_constraints,
    read,
    training_rows,
)
from softsplit.cli.outputs import (
    as_object,
    baseline_worker,
    check_files,
    figures_object,
    figures_text,
    write_report,
    write_text,
)
from softsplit.cli.wording import as_options
from softsplit.support.messages import visible
from softsplit.support.options import service
from softsplit.support.parallel import n_threads

if TYPE_CHECKING:
    from softsplit.data.learning import LabelledRows
    from softsplit.report import FitOptions, Fitted, ReportData

FIT_SHARE = 0.6
"""Fraction of the time limit for model selection and training if a report follows."""

EPILOG = (
    "Example: softsplit fit patients.csv --target outcome --model tree.json --report tree.html. "
    "Ctrl-C ends the choice and keeps the best tree so far (exit code 130)."
)


@option_advice()
def fit(
    context: typer.Context,
    data: options.Data,
    target: options.Target,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="Write the tree to this file (JSON).")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", "-r", help="Write a report to this file (HTML).")
    ] = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    categorical: options.Categorical = None,
    date: options.Date = None,
    kind: options.Kind = None,
    groups: options.Groups = None,
    encoding: options.Encoding = None,
    depth: options.Depth = None,
    strength: options.Strength = None,
    max_features: options.MaxFeatures = None,
    max_terms: options.MaxTerms = None,
    max_questions: options.MaxQuestions = None,
    required: options.Required = None,
    forbidden_together: options.ForbiddenTogether = None,
    at_most_one: options.AtMostOne = None,
    feature_cost: options.FeatureCost = None,
    parity: options.Parity = None,
    equal_opportunity: options.EqualOpportunity = None,
    equalized_odds: options.EqualizedOdds = None,
    favourable: options.Favourable = None,
    sensitive_only: options.SensitiveOnly = None,
    rate: options.Rate = None,
    ridge: options.Ridge = None,
    steepness: options.Steepness = None,
    scale: options.ScaleOption = None,
    curves: options.Curves = "auto",
    monotone: options.Monotone = None,
    loss: options.LossOption = options.LossName.log,
    scope: options.ScopeOption = None,
    selection: options.SelectionOption = options.Selection.default,
    teacher: options.TeacherOption = None,
    class_weight: options.ClassWeight = None,
    min_rate: options.MinRate = None,
    cost: options.Cost = None,
    metric: options.Metric = None,
    time_limit: options.TimeLimit = 45.0,
    effort: options.Effort = "balanced",
    by: options.By = None,
    refer: options.Refer = 0.9,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    dask: options.Dask = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit a small tree to a table and print it.

    Cross-validation chooses depth, scaling and strength unless you give them; with both depth
    and strength nothing is chosen. On large tables settings are compared on a sample of the rows;
    the tree is trained on all of them.
    """
    began = time.perf_counter()
    check_files({"--model": model, "--report": report}, table=data)
    if dask is not None:
        cluster = service("dask", "--dask", "leave it out, and give one table")
        cluster.refuse(
            {
                "--report": report, "--by": by,
                "--groups": groups, "--encoding": encoding, "--cost": cost,
                "--ridge": ridge, "--steepness": steepness,
                "--loss cost": loss is options.LossName.cost,
                "--min-rate CLASS=NUMBER": any("=" in text for text in min_rate or ()),
                "--curves": curves not in ("auto", 0), "--teacher": teacher,
                "--class-weight CLASS=NUMBER": class_weight not in (None, [], ["balanced"]),
            }
        )  # fmt: skip
        source = context.get_parameter_source("time_limit")
        usual = source is not None and source.name == "DEFAULT"  # on a cluster no default limit
        interrupted = cluster.fit_dask(
            data,
            target,
            dask,
            {"drop": drop, "keep": keep, "category": categorical, "date": date},
            kind,
            {
                "depths": "auto" if depth is None else [depth],
                "scales": "auto" if scale is None else [scale.value],
                "scopes": "auto" if scope is None else [scope.value],
                "strengths": None if strength is None else [strength],
                "max_features": max_features,
                "max_terms": max_terms,
                "max_questions": max_questions,
                **column_rules((), required, forbidden_together, at_most_one, feature_cost),
                "monotone": monotone_effects(monotone),
                "min_class_rate": minimum_rates(min_rate, ()),
                "constraints": rate_constraints(rate),
                "selection": selection.value,
                "class_weight": "balanced" if class_weight else None,
                "scoring": metric,
                "time_limit": None if usual else time_limit or None,
                "n_jobs": jobs or n_threads(None),
                "random_state": seed,
            },
            fairness=lambda names: fairness_of(
                names, parity, equal_opportunity, equalized_odds, favourable
            ),
            apart=sensitive_only or (),
            model=model,
            quiet=quiet,
            as_json=as_json,
        )
        raise typer.Exit(cluster.exit_code(interrupted))
    table = read(data, encoding, quiet)
    names = list(map(str, table.frame.columns))
    with heartbeat(quiet, "looking at the columns"):
        fairness = fairness_of(names, parity, equal_opportunity, equalized_odds, favourable)
        constraints = rate_constraints(rate)
        apart = [str(name) for name in named_columns(constraints, fairness)]
    rows = training_rows(
        table, target, quiet, kind, apart,
        drop=[*(drop or ()), *(sensitive_only or ())] or None,
        keep=keep, category=categorical, date=date,
    )  # fmt: skip
    worker = baseline_worker(context, rows, jobs) if report is not None else None
    # Imported after the first message, since it takes seconds, and before training, so that Ctrl-C
    # cannot come between a trained tree and the import of what saves it.
    with heartbeat(quiet, "loading the solver"):
        from softsplit.fitted.conformal import checked_confidence
        from softsplit.persistence import dumps_model
        from softsplit.report.study import FitOptions, fit_tree

        refer, groups_told = checked_confidence(refer, "--refer"), groups_by(table, target, by)

    classes = sorted(set(rows.y.tolist()))
    settings = FitOptions(
        depth=depth,
        strength=strength,
        ridge=ridge,
        steepness=steepness,
        scale=scale.value if scale else None,
        curves=curves,
        monotone=monotone_effects(monotone),
        loss=loss.value,
        scope=scope.value if scope else None,
        selection=selection.value,
        teacher=teacher.value if teacher else None,
        class_weight=class_weights(class_weight, classes),
        min_class_rate=minimum_rates(min_rate, classes),
        constraints=constraints,
        fairness=fairness,
        cost_matrix=cost_matrix(cost, classes),
        scoring=metric or ("balanced_accuracy" if class_weight == ["balanced"] else None),
        time_limit=(FIT_SHARE if report else 1.0) * time_limit or None,
        effort=effort,
        seed=seed,
        n_jobs=jobs or n_threads(None),
        verbose=not quiet,
        groups=grouped(rows, groups),
        of_table=given_options(context, OF_TABLE),
        max_features=max_features,
        max_terms=max_terms,
        max_questions=max_questions,
        **column_rules(rows.coding.names, required, forbidden_together, at_most_one, feature_cost),
    )
    start = time.perf_counter()
    with heartbeat(quiet, "fitting"):
        found = fit_tree(rows, settings)
    for note in found.notes:
        say(as_options(note))
    if model is not None:  # first: the tree is kept even if the report fails
        write_text(model, dumps_model(found.tree))
        if not quiet:
            say(f"the tree is in {model}")
    report_data, interrupted = None, found.interrupted
    if report is not None and not interrupted:
        left = None
        if time_limit:
            spent = min(time.perf_counter() - start, settings.time_limit or 0.0)
            left = time_limit - spent  # the time to compile does not count
        with heartbeat(quiet, "making the report", left) as tell:
            report_data, interrupted = _reported(
                table.name, rows, found, settings, report, left, tell=tell, by=groups_told,
                refer=refer, worker=worker,
            )  # fmt: skip
    if report is not None and report_data is None:
        how = f"; make it with: softsplit report {model} {data}" if model else ""
        say(f"no report is written after Ctrl-C{how}")
    _show(
        found,
        rows,
        report_data,
        {"model": model, "report": report if report_data else None},
        as_json,
    )
    if not quiet:
        say(f"done in {time.perf_counter() - began:.0f} s")
    if found.interrupted:
        say("interrupted: this is the best tree so far.")
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _reported(
    name: str,
    rows: LabelledRows,
    found: Fitted,
    settings: FitOptions,
    report: Path,
    time_limit: float | None,
    **asked: Any,
) -> tuple[ReportData | None, bool]:
    """Write the report; return its data, None after an early Ctrl-C, and whether Ctrl-C came."""
    report_data: ReportData | None = None
    with suppress(KeyboardInterrupt):
        report_data, interrupted = write_report(
            report, name, rows, found.tree, found.provenance,
            seed=settings.seed, jobs=settings.n_jobs,
            time_limit=time_limit, repeatable=found.repeatable, search=found.search,
            of_table=settings.of_table, **asked,
        )  # fmt: skip
    if report_data is None:
        return None, True
    if interrupted:
        say("interrupted: accuracies in the report are incomplete.")
    if settings.verbose:
        say(f"the report is in {report}")
    return report_data, interrupted


def _show(
    found: Fitted,
    rows: LabelledRows,
    report_data: ReportData | None,
    files: dict[str, Path | None],
    as_json: bool,
) -> None:
    import numpy as np

    from softsplit.reading.case_costs import CaseCosts, arriving_shares
    from softsplit.report.report_data import strength_of

    tree = found.tree
    matrix = rows.coded_as(tree.tree_.coding).matrix
    predicted = tree.classes_[tree.tree_.predict_index(matrix)]
    training_accuracy = float(np.mean(predicted == rows.y))
    accuracy = None if report_data is None else report_data.accuracy(report_data.chosen)
    names = [tree.tree_.column_names[j] for j in tree.selected_features_]
    costs, shares = CaseCosts.of(tree.tree_), arriving_shares(tree.tree_, matrix).mean(axis=0)
    cost = float(shares @ costs.of_leaves)
    if as_json:
        print_json(
            {
                "rows": len(rows.y),
                "dropped_rows": rows.dropped_rows,
                "left_out": dict(rows.coding.left_out),
                "features": rows.coding.n_candidates,
                "classes": [str(label) for label in tree.classes_],
                "depth": int(np.log2(tree.leaf_classes_.shape[1])),
                "selected_features": names,
                **({} if tree.feature_costs is None else {"expected_cost": cost}),
                "strength": strength_of(tree),
                "local_strength": float(tree.local_strength),
                "global_strength": float(tree.global_strength),
                "scale": tree.scale,
                "loss": tree.loss,
                "steepness": float(tree.tree_.steepness),
                "training_accuracy": training_accuracy,
                "chosen_score": found.score,
                "accuracy": as_object(accuracy),
                **({} if report_data is None else figures_object(report_data)),
                "interrupted": found.interrupted,
                "files": {name: str(path) for name, path in files.items() if path is not None},
            }
        )
        return
    from softsplit.reading.text import export_text

    facts = {"training accuracy": f"{100 * training_accuracy:.1f} %"}
    if report_data is not None and accuracy is not None:
        facts |= figures_text(report_data)
    elif found.score is not None:
        facts["cross-validated accuracy"] = (
            f"{100 * found.score:.1f} % (used to choose the tree: slightly optimistic)"
        )
    facts["features used"] = f"{len(names)} of {rows.coding.n_candidates}"
    said = set(tree.tree_.leaf_predictions.tolist())
    never = [visible(label) for k, label in enumerate(tree.classes_) if k not in said]
    if never:
        more = f" and {len(never) - 5} more" if len(never) > 5 else ""
        facts["never predicted"] = (
            f"{len(never)} of {len(tree.classes_)} classes: {', '.join(never[:5])}{more}"
        )
    if tree.feature_costs is not None and tree.tree_.walk is None:  # else the text says it
        facts["costs"] = costs.sentence(shares)
    if rows.dropped_rows:
        facts["rows not used"] = f"{rows.dropped_rows:,} without a class"
    for name, value in found.provenance:
        facts[name.lower()] = value
    echo(export_text(tree) + "\n")
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        echo(f"{name:<{width}}{value}")
