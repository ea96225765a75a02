"""How a tree was chosen, in words."""

from __future__ import annotations

import numpy as np

from softsplit.estimators.classifier_cv import SoftTreeClassifierCV
from softsplit.selection.scoreboard import ERRORS
from softsplit.support.messages import visible


def describe_choice(search: SoftTreeClassifierCV, sample: str = "") -> str:
    """How a tree was chosen, in words; ``sample`` says which rows were compared, if not all."""
    count = len(search.cv_results_["mean_test_score"])
    if count == 0:
        return "the first of those to choose from: there was no time to compare any"
    name = "default" if search.selection == "auto" else search.selection
    if "priced_log_loss" in search.cv_results_:
        rule = "the one with the lowest held-out log-loss"
        if search.feature_price_ > 0:
            each = ", more for a dearer one" if search.feature_costs is not None else ""
            rule += f"; a feature is kept if it improves held-out predictions{each}"
    else:
        words = {0.0: "", 1.0: "one standard error", 2.0: "two standard errors"}[ERRORS[name]]
        rule = f"the tree with the fewest features whose score is within {words} of the best"
        rule = rule if words else "the best one"
    folds, twice = search.n_splits_ // search.n_repeats_, search.n_repeats_ > 1
    again = ", repeated with a second division into folds" if twice else ""
    text = f"chosen by {folds}-fold cross-validation among {count} trees{sample}{again}: {rule}"
    return text + _describe_factors(search) + _describe_teacher(search)


def _describe_factors(search: SoftTreeClassifierCV) -> str:
    """By which factors the choice has raised rare classes; the option --cost repeats them."""
    costs = search.best_params_.get("cost_matrix")
    if costs is None or search.cost_matrix is not None:
        return ""
    factors = zip(search.classes_.tolist(), np.max(costs, axis=1), strict=True)
    raised = [f"{visible(label)} x {factor:.3g}" for label, factor in factors if factor != 1]
    text = "; to predict, the probabilities of rare classes are multiplied by factors chosen on"
    return f"{text} held-out rows: {', '.join(raised)}"


def _describe_teacher(search: SoftTreeClassifierCV) -> str:
    """That a teacher took part, and what would have been chosen without it."""
    results = search.cv_results_
    weight = results["param_teacher"][search.best_index_] if search.targets_ is not None else 0.0
    if weight == 0:
        return ""
    text = f"; {100 * weight:g} % of what it learned are probabilities of a teacher"
    if "priced_log_loss" not in results:
        return text
    most = results["n_splits_done"] == results["n_splits_done"].max()
    others = np.flatnonzero(most & (results["param_teacher"] == 0))
    without = others[np.argmin(results["priced_log_loss"][others])]
    here, there = (
        f"log-loss {results['mean_test_log_loss'][row]:.3f} with "
        f"{results['mean_n_features'][row]:.1f} features"
        for row in (search.best_index_, without)
    )
    return f"{text}, {here} on held-out rows; without it {there}"
