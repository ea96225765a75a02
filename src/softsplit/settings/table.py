"""The table of parameters: name, type, default, check, options of the command line, documentation.

Estimators inherit their signature from these classes, and their documentation; the command line
makes its options of the same fields, model files and reports take the names, and formulations the
fields that define a problem. What a parameter means stands in the docstring of its class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from softsplit.settings.checks import (
    effort_factor,
    job_count,
    knot_count,
    one_among,
    points_form,
    run_count,
    truth,
)
from softsplit.settings.parameter import DATA, REQUIREMENTS, RUN, CliOption, parameter
from softsplit.support.arguments import positive_integer, positive_number

LOSSES = ("log", "cost")
SCALES = ("minmax", "quantile", "standard")
SCOPES = ("size", "global", "local", "both")
SELECTIONS = ("default", "sparse", "one_se", "best", "auto")
TEACHERS = ("auto", "forest", "boosting")


@dataclass(kw_only=True, eq=False, repr=False)
class ProblemParameters:
    """What a problem is, besides the parameters of one tree.

    Parameters
    ----------
    loss : "log", "cost" or a loss object, default="log"
        Training loss. "log" is the negative log-likelihood of the classes, "cost" the expected
        misclassification cost of the paper; an object must have the parts of
        ``softsplit.problem.loss.Loss``.
    cost_matrix : array of shape (n_classes, n_classes), optional
        Cost of predicting a class (column) for a sample of another class (row); 0.5 for every
        error if not given. With loss "log" it is not used in training; ``predict`` returns the
        class of least expected cost.
    class_weight : dict or "balanced", optional
        Factors on the costs of each class, or on the weights of its rows with loss "log". Unlike
        ``sample_weight`` they do not act on scaling, knots of curves and imputed values, so that
        the same factors give another tree. Costs below a millionth of the largest are treated as
        zero.
    min_class_rate : float, sequence, dict or "auto", default="auto"
        Least expected share of each class that must be classified correctly; "auto" is 0.1 with
        loss "cost", and 0 with loss "log".
    decision : {"auto", "walk", "mixture"}, default="auto"
        How ``predict`` decides. "walk": yes or no at every printed question, then the class of the
        leaf, so that the tree can be followed by hand; questions and probabilities are rounded to
        the digits that are printed. "mixture": the most probable class, over all leaves. "auto" is
        "walk" with loss "log", and "mixture", the rule of the paper, with loss "cost".
    points : bool or "fine", default=True
        Whether the questions of a tree by likelihood are whole points, which a person adds up by
        hand: points for ranges of a number or for levels, found on the likelihood after training.
        "fine" keeps more terms and slopes, as near to the weights as whole points get; the choice
        by cross-validation takes it where short tables cost more on held-out rows.
        Where points would miss a requirement on rates, or be right on clearly fewer rows under it,
        the questions keep their weights.
        Otherwise, under requirements on rates and monotone effects, and where ``decision`` is
        "mixture", questions are sums of weights.
    sharpness : float, default=5.0
        alpha of the "l0" penalty 1 - exp(-alpha u).
    exponent, offset : float, default=0.5 and 1e-5
        q and epsilon of "power" (u + epsilon)^q, "inverse_power" and "log".
    max_features : int, optional
        Most columns of X that the tree may use; a group counts as one. With this and the next two
        the tree is the best one that was found within the limits, not a larger one that was cut:
        see docs/sizes.md. They need loss "log" with penalty "count"; strengths apply as usual, so
        that the tree may be smaller than the limits.
    max_terms : int, optional
        Most columns of X in one question, counted in the same way.
    max_questions : int, optional
        Most questions, which are branches that look at a column.
    engine : "memory" or callable, default="memory"
        Where the training rows are kept during training. "memory" is the memory of this process;
        a function of the rows returns another engine (``softsplit.engines.base.RowEngine``).
    device : str, optional
        "cuda" (or "cuda:1", ...) keeps the training rows on a GPU, "cpu" runs the same code without
        one; both need ``softsplit[gpu]``. Rows given in single precision stay so there. None is the
        compiled code of this process, unless X is a tensor on a GPU. See docs/gpu.md.
    """

    max_features: int | None = parameter(
        None, "Largest number of columns in the tree.", int, least=1, check=positive_integer
    )
    max_terms: int | None = parameter(
        None, "Largest number of columns in a question.", int, least=1, check=positive_integer
    )
    max_questions: int | None = parameter(
        None, "Largest number of questions.", int, least=1, check=positive_integer
    )
    loss: Any = parameter(
        "log",
        "Train by likelihood (log), or for the expected misclassification cost of the paper "
        "(cost).",
        LOSSES,
        given="log",
    )
    class_weight: Any = parameter(
        None,
        "Weight of the rows of a class in training: balanced (rare classes count as much as "
        "frequent ones), or CLASS=NUMBER, which may be repeated.",
        list,
    )
    min_class_rate: Any = parameter(
        "auto",
        "Share of a class that the tree must find in training: CLASS=NUMBER, which may be "
        "repeated, or one number from 0 to 1 for all classes.",
        list,
        flag="--min-rate",
    )
    cost_matrix: ArrayLike | None = parameter(
        None,
        "Cost of a wrong prediction for a row of a class: CLASS=NUMBER, which may be repeated; 1 "
        "for classes that are not named.",
        list,
        flag="--cost",
    )
    decision: str = "auto"
    points: bool | str = parameter(True, check=points_form)
    sharpness: float = 5.0
    exponent: float = 0.5
    offset: float = 1e-5
    engine: Any = "memory"
    device: str | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class ColumnParameters:
    """What holds for columns of the table.

    Parameters
    ----------
    feature_types : dict, optional
        Types of columns of a table, by name or position, that override what ``fit`` infers:
        "number", "category", "ordered" or "ordered: low < mid < high", "date", "date: hour,
        weekday" or "date: since signup", "keep" for a column that it would drop (an identifier,
        free text), or "drop". See docs/tables.md.
    groups : sequence of sequences or False, optional
        Columns of X, by names or positions, that are selected together: the global penalty counts
        such a group as one feature, as it does all columns that a variable of a table becomes.
        With False every column of the problem is a feature of its own.
    curves : "auto", False or int, default="auto"
        Number of knots at which the effect of a number may bend: beside the column x a split may
        weigh max(x - knot, 0). Knots are rounded quantiles of the training rows;
        numbers of few values have none. All columns of a number count as one feature, each as a
        coefficient.
        "auto" is one knot, the median, and from 2,000 rows on three, the quartiles, with loss
        "log", the native solver and no quantile scaling; there are none otherwise, nor for wide
        sparse matrices and tensors. See docs/tables.md.
    monotone : mapping of columns to "+" or "-", optional
        Effects that must have a sign, as in ``{"arrears": "+", "income": "-"}``: all else equal,
        the probability of the second class never falls (rises) when the column rises, and nor
        does the predicted class, for all inputs. Of several classes, ``{"age": {"malignant":
        "+"}}`` names one, and ``{"age": "+"}`` takes them in the order of ``classes_``
        (first-order stochastic dominance). For numbers and ordered columns; see
        docs/requirements.md and ``check_monotone``.
    required : sequence, optional
        Columns of X, by names or positions, that must be in the tree. They have no price in the
        penalty. See docs/requirements.md, also for the next three.
    forbidden_together : sequence of pairs, optional
        Pairs of columns of which one at most may be in the tree.
    at_most_one : sequence of sequences, optional
        Sets of columns of which one at most may be in the tree. To forbid a column altogether,
        leave it out of X or give it the type "drop" (``feature_types``).
    feature_costs : dict, optional
        What it costs to measure columns of X, by name or position, as a multiple of the price of an
        ordinary column: a column of cost c that all rows need counts as c features, in the
        objective and in a choice by cross-validation; of a cost above 1, what is above 1 counts by
        the share of the rows on whose way a question asks for the column. Columns that are not
        named cost 1; 0 is allowed. ``expected_cost`` tells what a case costs.
    constraints : RateConstraint or list of them, optional
        Least or largest expected rates of a class on chosen rows; ``min_class_rate`` is a case of
        it. See docs/requirements.md.
    fairness : Parity, EqualOpportunity, EqualizedOdds or list of them, optional
        Largest difference of the expected rates of a class between the groups of a column. The
        bound holds on the training rows, also for the decisions of the walk where such a walk is
        found (``tree_.rates`` says both). See docs/requirements.md.
    """

    feature_types: Any = parameter(
        None,
        "Kind of one column: number, category, 'ordered: low < mid < high', 'date: hour, "
        "weekday', 'date since OTHER', keep or drop; may be repeated.",
        list,
        CliOption("--drop", "Columns to ignore, separated by commas; may be repeated.", list, DATA),
        CliOption(
            "--keep",
            "Columns to use that look like identifiers, free text or constants.",
            list,
            DATA,
        ),
        CliOption(
            "--categorical",
            "Columns of numbers that are categories. Text columns always are.",
            list,
            DATA,
        ),
        CliOption(
            "--date",
            "Columns of dates; 2026-11-16, 16.11.2026 and the like are recognised without it.",
            list,
            DATA,
        ),
        flag="--kind",
        panel=DATA,
        metavar="COLUMN=KIND",
    )
    groups: Any = parameter(
        None,
        "Columns, separated by commas, that are selected together; once for each group.",
        list,
        panel=DATA,
    )
    curves: str | bool | int = parameter(
        "auto",
        "Knots at which the effect of a number may bend, 0 for straight effects; auto is one, and "
        "three with thousands of rows (none with --loss cost).",
        object,
        metavar="KNOTS",
        given="auto",
        check=knot_count,
    )
    monotone: Any = parameter(
        None,
        "An effect that must be monotone: COLUMN=+ or COLUMN=-, for the second class or for all "
        "classes in their order, or COLUMN=CLASS:+; may be repeated.",
        list,
    )
    required: Any = parameter(
        None, "Columns that must be in the tree, separated by commas.", list, panel=REQUIREMENTS
    )
    forbidden_together: Any = parameter(
        None,
        "Two columns of which at most one may be in the tree; once for each pair.",
        list,
        panel=REQUIREMENTS,
        metavar="A,B",
    )
    at_most_one: Any = parameter(
        None,
        "Columns of which at most one may be in the tree; once for each set.",
        list,
        panel=REQUIREMENTS,
        metavar="A,B,C",
    )
    feature_costs: Any = parameter(
        None,
        "Cost of measuring a column; other columns cost 1. May be repeated.",
        list,
        flag="--feature-cost",
        panel=REQUIREMENTS,
        metavar="COLUMN=NUMBER",
    )
    fairness: Any = parameter(
        None,
        "Largest difference of the rates of the favourable class between groups of a column "
        "(demographic parity); COLUMN>NUMBER=BOUND compares values up to a number and above it. "
        "May be repeated.",
        list,
        CliOption(
            "--equal-opportunity",
            "The same among the rows of the favourable class.",
            list,
            REQUIREMENTS,
            metavar="COLUMN=BOUND",
        ),
        CliOption(
            "--equalized-odds",
            "The same among the rows of each class.",
            list,
            REQUIREMENTS,
            metavar="COLUMN=BOUND",
        ),
        CliOption(
            "--favourable",
            "The class whose rates are compared; the second of two, if not given.",
            str,
            REQUIREMENTS,
            metavar="CLASS",
        ),
        CliOption(
            "--sensitive-only",
            "Column that defines groups but is not a feature; may be repeated.",
            list,
            REQUIREMENTS,
            metavar="COLUMN",
        ),
        flag="--parity",
        panel=REQUIREMENTS,
        metavar="COLUMN=BOUND",
    )
    constraints: Any = parameter(
        None,
        "Bound of the expected rate of a class, <= or >=, on some rows: COLUMN=VALUE, COLUMN > "
        "NUMBER or COLUMN <= NUMBER; without 'on ...' on all rows, with 'given CLASS' among those "
        "of a class. May be repeated.",
        list,
        flag="--rate",
        panel=REQUIREMENTS,
        metavar="'CLASS on COLUMN=VALUE <= NUMBER'",
    )


@dataclass(kw_only=True, eq=False, repr=False)
class RunParameters:
    """How a training runs.

    Parameters
    ----------
    solver : str or solver object, default="native"
        "native", "ipopt" (needs ``softsplit[ipopt]``), or
        "decomposition", which trains a few nodes at a time: ``NodeDecomposition(...)``.
    n_starts : int, default=10
        Number of starts; the tree with the lowest objective is kept. With loss "cost" the native
        solver then searches around the best ones by basin hopping (``effort``).
    effort : {"fast", "balanced", "thorough"} or float, default="balanced"
        Work of the native solver as a multiple of the default: 0.2, 1 and 5 by name. With loss
        "cost" the search stops when the estimated chance of a better tree is below a threshold
        divided by ``effort``, so that with the same seed more effort never ends higher; with loss
        "log" every start compares ``effort`` times as many trees. ``solution_.search`` says how
        the search ended.
    max_iter : int, optional
        Iterations per start; the solver's default if not given.
    tol : float, default=1e-6
        Tolerance of the first-order conditions.
    time_limit : float, optional
        Seconds for all starts together. Compiling and loading code do not count.
    n_jobs : int, optional
        Number of starts that run in parallel; with more than 20,000 rows (50,000 with loss "cost")
        the last descents use as many threads. If it is not given: all cores with more than 4,000
        rows, or where a start takes seconds; otherwise one. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        With 1 or more, show on standard error what runs now, how far it is and how long still: in
        a terminal a line that is rewritten, below a line for each start; in a notebook a bar;
        elsewhere a line every ten seconds. Each start is also logged at level INFO of the logger
        "softsplit".
    """

    solver: Any = "native"
    n_starts: int = parameter(10, check=run_count)
    max_iter: int | None = parameter(None, check=positive_integer)
    tol: float = parameter(1e-06, check=positive_number)
    time_limit: float | None = parameter(
        None,
        "Seconds for training and the report; then the best tree so far is kept. 0 is no limit. "
        "Reading the table and compiling on first use are not included.",
        float,
        panel=RUN,
        least=0.0,
        given=45.0,
        check=positive_number,
    )
    effort: str | float = parameter(
        "balanced",
        "fast, balanced, thorough, or a multiple of balanced: how many candidate trees are tried "
        "per start or, with --loss cost, how long the search for better ones goes on.",
        object,
        panel=RUN,
        metavar="EFFORT",
        given="balanced",
        check=effort_factor,
    )
    n_jobs: int | None = parameter(
        None,
        "Threads; default: all.",
        int,
        flag="--jobs",
        panel=RUN,
        least=1,
        short="-j",
        check=job_count,
    )
    random_state: Any = parameter(None, "Random seed.", int, flag="--seed", panel=RUN, given=0)
    verbose: int = parameter(0, check=truth)


@dataclass(kw_only=True, eq=False, repr=False)
class SingleTreeParameters:
    """Parameters of one tree.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Depth of the tree. "auto" is the smallest with a leaf per class, and with loss "log" one
        more, up to depth six: branches that do not lower the objective are pruned.
    penalty : {"count", "l1", "l0", "power", "inverse_power", "log", "auto"} or None, default="auto"
        Penalty on coefficients (local) and on features (global): their number ("count"), their
        size ("l1"), or a concave approximation of the number. "auto" is "count" with loss "log"
        (with a solver that cannot count, such as "ipopt", it is "l0"), and the "l0" of the paper
        with loss "cost".
    local_strength, global_strength : float or "auto", default="auto"
        Strength of the penalty on single coefficients (local) and on features across the tree
        (global). "auto" is:
        - loss "log", global: 0.6 % of the log-loss of a tree without features (or of two even
          classes, if that is less). Beyond 1,000 rows it falls with the square root of their
          number. It is at least a quarter of log p + log(n) / 2, so that the best of p columns of
          noise does not enter a tree of n rows.
        - loss "log", local: a quarter of the global strength with the penalty "count", else 0.
        - loss "cost": 0 for both.
    steepness : float or "auto", default="auto"
        gamma of loss "cost", the slope of the splits; 512 for "auto". With loss "log" weights are
        unbounded and absorb it.
    scale : {"minmax", "quantile", "standard", "none", "auto"}, bool or None, default="auto"
        How features are scaled inside ``fit``. "minmax" maps their range to [0, 1]; "standard"
        maps mean -+ 3 standard deviations there, so that outliers do not compress the others;
        "quantile" maps each value to its rank among the training values, which suits skewed
        features (values outside the training range are clipped). "none" leaves X unscaled; with
        loss "cost", thresholds and weights still lie in [-1, 1], and ``steepness`` is per unit of
        X. True is "minmax", False and
        None "none". "auto" is "standard" with loss "log", and "minmax" with loss "cost".
    ridge : float, default=1.0
        Factor of half the sum of squared weights, which is added to the log-loss. Weights are
        changes of log-odds per standard deviation of a feature.
    """

    depth: int | str = parameter("auto", "Depth; chosen if not given.", int, least=1, most=10)
    penalty: str | None = "auto"
    local_strength: float | str = "auto"
    global_strength: float | str = parameter(
        "auto",
        "Penalty of each feature, as global_strength in Python; chosen if not given.",
        float,
        CliOption(
            "--scope",
            "What is penalised: features, and coefficients at a quarter of the price (size), "
            "features (global), single coefficients (local), or both at one price (both). "
            "Default: size, or global with --loss cost.",
            SCOPES,
        ),
        flag="--strength",
        least=0.0,
    )
    ridge: float = parameter(
        1.0,
        "Penalty of large coefficients; chosen if not given, 1 with --depth and --strength.",
        float,
        least=0.0,
    )
    steepness: float | str = parameter(
        "auto", "Steepness of the splits with --loss cost; chosen if not given.", float, least=1e-06
    )
    scale: str | bool | None = parameter("auto", "Scaling; chosen if not given.", SCALES)


@dataclass(kw_only=True, eq=False, repr=False)
class ChoiceParameters:
    """What a choice by cross-validation compares, and how.

    Parameters
    ----------
    depths : "auto" or sequence of int, default="auto"
        Depths to choose from. "auto" begins with the smallest that has a leaf per class, goes one
        level further, and on while leaves hold 25 rows on average (50 with loss "cost") and, with
        more than 3,000 rows, a tree of all columns has up to 4,200 coefficients. After the
        second, a depth is tried only if the one before it was the best so far by more than one
        standard error; with more than 3,000 rows it must also have lowered the log-loss by two per
        cent, and by 0.0035 at least. Where the log-loss is below 0.07, a depth that has not done so
        is dropped.
    scales : sequence of {"minmax", "quantile", "standard", "none"} or "auto", default="auto"
        Scalings of the features; see ``SoftTreeClassifier``. "auto" is ("standard",) where effects
        may bend (``curves``) or there are more than 1.5 million cells, and ("standard", "quantile")
        otherwise; ("minmax", "quantile") with loss "cost".
    steepnesses : sequence of float or "auto", default="auto"
        Values of gamma for loss "cost"; (512, 128) for "auto".
    penalties : sequence of str or "auto", default="auto"
        "auto" is ("count",), and ("l0",) with loss "cost".
    scopes : sequence of {"size", "global", "local", "both"} or "auto", default="auto"
        What the penalty is put on: features and coefficients four to one, features, single
        coefficients, or half on each. "auto" is ("size",), and ("global",) with loss "cost".
    strengths : sequence of float, optional
        What a feature costs in a tree on all rows, as ``global_strength`` (with the scope "local":
        a coefficient, as ``local_strength``); on a fold in proportion to the loss there. Under
        several scopes it is that of the first. By default ``n_strengths`` parts of the loss of a
        tree that uses no feature: from 0.0008 to 0.3, and with loss "cost" from 0.002 to 0.25.
    n_strengths : int or "auto", default="auto"
        12, and 8 with loss "cost".
    ridges : sequence of float or "auto", default="auto"
        Ridges to choose from with loss "log"; (1, 0.1, 5) for "auto".
    selection : {"default", "sparse", "one_se", "best"}, default="default"
        The trade between quality and size. By likelihood the tree is taken with the lowest log-loss
        on held-out rows plus a price for each feature and each term beyond the third of a
        question: for "default" 0.0025 of the log-loss without features (less beyond 1,000 rows),
        for "one_se" 0.005, for "sparse" 0.008, and nothing for "best". With a scorer or by cost it
        is the sparsest tree that is worse than the best by at most one standard error over the
        folds, two for "sparse" and none for "best"; sparser means fewer features, less depth, then
        fewer coefficients a branch. "auto" is another name of "default".
    scoring : str or callable, optional
        Any scikit-learn scorer; accuracy if not given, which with loss "log" is told in
        ``cv_results_`` as the score, while trees are compared by the log-loss. Sample weights are
        handed to it if it takes them.
    cv : "auto", int, splitter or iterable of splits, default="auto"
        A number means stratified shuffled folds, fewer if every class is smaller than that. "auto"
        is 5, made twice where up to 150 rows are compared by likelihood and without groups, and 4
        where more than 3,000 are.
    teacher : None, "forest", "boosting", "auto", classifier or array, default=None
        Another classifier whose class probabilities are mixed with the labels that trees are
        trained on: a random forest, histogram boosting, any classifier of scikit-learn's kind, or
        its probabilities (n_samples, n_classes), a column for each class in sorted order, of rows
        that it has not seen. What weight it gets, none among them, is chosen with the other
        settings, and judged by the true labels alone. "auto" is a small forest of extremely
        randomised trees and one weight, with loss "log" and up to 25,000 rows in memory, and no
        teacher otherwise.
    rare_classes : {"auto", "argmax"}, default="auto"
        Which class ``predict`` returns with loss "log", where no ``cost_matrix`` is given. "argmax"
        is the most probable one. "auto" is the same, except that a class with less than half of an
        even share of the samples is predicted earlier, as long as the accuracy on held-out samples
        falls by no more than half its standard error; ``best_params_["cost_matrix"]`` then holds
        the costs that do so. Probabilities do not change.
    n_starts : int, default=1
        Starts of each path.
    max_iter : int, optional
        Iterations of each descent; 200 if not given: more do not make the choice better.
    time_limit : float, optional
        Seconds for everything. What was compared by then decides; the last fifth is kept for the
        tree on all rows. Machine code is made or loaded before they count.
    n_jobs : int, optional
        Threads in which folds and starts run side by side, and descents on many rows. If it is not
        given: all cores with more than 4,000 rows, or where a start takes seconds; otherwise one.
        All cores are those within the limits of affinity, OMP_NUM_THREADS, threadpoolctl and
        joblib, in whose workers it is one. The result does not depend on it.
    verbose : int, default=0
        With 1 or more, what runs now and how each candidate did, on standard error.
    """

    depths: Sequence[int] | str = "auto"
    scales: Sequence[str] | str = "auto"
    steepnesses: Sequence[float] | str = "auto"
    penalties: Sequence[str] | str = "auto"
    scopes: Sequence[str] | str = "auto"
    strengths: Sequence[float] | None = None
    n_strengths: int | str = "auto"
    ridges: Sequence[float] | str = "auto"
    selection: str = parameter(
        "default",
        "The trade between quality and size: the best tree (best), or a smaller one (default, "
        "one_se, sparse, in this order); auto is default.",
        SELECTIONS,
        given="default",
        check=one_among(SELECTIONS),
    )
    scoring: Any = parameter(
        None,
        "Score used to compare trees, a scorer of scikit-learn such as balanced_accuracy or "
        "roc_auc. Default: log-loss plus a penalty for each feature; with --loss cost accuracy; "
        "with --class-weight balanced balanced_accuracy.",
        flag="--metric",
    )
    cv: Any = "auto"
    teacher: Any = parameter(
        None,
        "Mix probabilities of another classifier with the classes that trees learn, where that "
        "makes the chosen tree better or smaller.",
        TEACHERS,
    )
    rare_classes: str = parameter("auto", check=one_among(("auto", "argmax")))
    n_starts: int = parameter(1, check=run_count)


# Tables of ``SoftTreeClassifier``.
CLASSIFIER = (SingleTreeParameters, ProblemParameters, ColumnParameters, RunParameters)

# Tables of ``SoftTreeClassifierCV``.
SEARCH = (ChoiceParameters, ProblemParameters, ColumnParameters, RunParameters)
