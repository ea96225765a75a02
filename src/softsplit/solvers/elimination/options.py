"""All tuning numbers of the elimination solver, one frozen dataclass for each algorithm.

``EliminationSolver(options=EliminationOptions(path=PathOptions(ridge=1.0)))`` changes one of them.
Weights are in log-odds per standardised unit, row counts are distinct rows, and a *decrease* is a
part of the value: a descent ends when two steps in a row lower it by less. Numbers that compiled
code needs at compile time stand in ``lbfgs.py`` (``LBFGS``) and ``objective.py`` (``PHI``).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SampleSizes:
    """How many rows each phase of a fit looks at.

    Attributes
    ----------
    support, more : int, float
        Rows on which the support is selected; the selected tree is fitted to all rows. Up to
        ``more`` times as many are all taken, since a stratified sample of ``support`` rows has
        slightly more than that where classes are rare.
    compared, compared_per_class : int
        Rows, and rows for each class, on which trees are only compared (folds, first samples).
    middle : int
        Rows of the sample that supplies the Hessian for descents on an engine.
    growth : int
        Factor between the first and the second sample of progressive sampling.
    largest_part : float
        A sample that is a larger part of the last one saves too little time and is left out.
    long : float
        Rows times parameters of a tree from which the final descent of each start takes seconds:
        starts are then compared first, and only the best are finished.
    kept_cells : int
        Standardised cells that a path keeps between its trees; more are made again when a tree of
        all columns asks for them.
    """

    support: int = 20_000
    more: float = 1.05
    compared: int = 1500
    compared_per_class: int = 100
    middle: int = 100_000
    growth: int = 4
    largest_part: float = 0.6
    long: float = 1e6
    kept_cells: int = 500_000

    def to_support(self, n_rows: int) -> int:
        """Rows, of ``n_rows``, on which the support is selected."""
        return n_rows if n_rows <= self.more * self.support else self.support

    def to_compare(self, n_classes: int) -> int:
        """Rows that are enough to compare trees."""
        return self.compared + self.compared_per_class * n_classes


@dataclass(frozen=True)
class RaceOptions:
    """Successive halving among the candidates of a start.

    Attributes
    ----------
    strength : float
        Strength of the smooth sparsity terms, as a part of the total weight: a middle one.
    full_strength_leaves : int
        Leaves up to which this strength holds; deeper trees get less, as a coefficient there
        serves fewer rows.
    ridge : float
        Ridge of the race, in row weights.
    steps, decrease : int, float
        First rung: L-BFGS steps of every candidate.
    split_steps : int
        Steps with fixed leaves before that, for every other candidate: where leaves are free at
        once, some settle for the same answer on both sides of a split.
    finalists : int
        Candidates that reach the second rung.
    final_steps, final_decrease : int, float
        Second rung.
    weak_part, weak_steps : float, int
        The winner descends once more at this part of ``strength``, to keep more features than a
        tree will need: elimination chooses among them.
    compared_part : float
        Part of the steps of later rungs where trees are only compared.
    most_candidates : int
        Most candidates of a start, whatever the effort.
    slice_seconds : float
        Compiled code cannot look at the clock: descents return to Python this often.
    step_seconds : float
        Seconds of a step for each row and branch, until one was measured.
    """

    strength: float = 0.0075
    full_strength_leaves: int = 4
    ridge: float = 0.1
    steps: int = 12
    decrease: float = 1e-4
    split_steps: int = 5
    finalists: int = 2
    final_steps: int = 80
    final_decrease: float = 3e-5
    weak_part: float = 0.2
    weak_steps: int = 40
    compared_part: float = 0.5
    most_candidates: int = 100
    slice_seconds: float = 0.1
    step_seconds: float = 3e-8


@dataclass(frozen=True)
class GrowthOptions:
    """Growing a tree by one level.

    Attributes
    ----------
    ridge : float
        Ridge of the logistic regression of a new split, in mean row weights.
    newton_steps : int
        Newton steps of that regression.
    descent_steps : int
        L-BFGS steps of the whole tree after each level but the last.
    fewest_rows : float
        A leaf with less weight, in mean row weights, is not split.
    least_reach : float
        Rows that reach a leaf with a smaller probability are left out of its regression.
    least_share : float
        Classes with a smaller share of a leaf are not separated there.
    most_columns : int
        With more columns the regression uses those whose class means differ most.
    largest_weight : float
        Largest coefficient of a new split.
    """

    ridge: float = 3.0
    newton_steps: int = 4
    descent_steps: int = 10
    fewest_rows: float = 4.0
    least_reach: float = 1e-2
    least_share: float = 1e-3
    most_columns: int = 150
    largest_weight: float = 4.0


@dataclass(frozen=True)
class ScreeningOptions:
    """Screening of columns before a race.

    Attributes
    ----------
    least_columns, rows_per_column : int
        With fewer columns, or with more rows for each of them, all columns race.
    slack : float
        A column passes with a score statistic this far below the null threshold: to miss an
        informative column costs more than to admit one of noise, which elimination removes again.
    fewest : int
        Columns that pass at least.
    nearly_all : float
        Where a larger part of the columns passes, all of them race.
    most_columns : int
        With more columns only screened ones race; with fewer a race on all columns is run too.
    rounds : int
        How often columns may join after a race.
    """

    least_columns: int = 80
    rows_per_column: int = 10
    slack: float = 1.0
    fewest: int = 10
    nearly_all: float = 0.8
    most_columns: int = 1000
    rounds: int = 3


@dataclass(frozen=True)
class PathOptions:
    """Backward elimination.

    Attributes
    ----------
    ridge : float
        Ridge of the refits, in row weights.
    refit_steps, refit_decrease : int, float
        L-BFGS steps after each round of pruning.
    share, large_share, huge_share, large, huge : float
        Part of the size that a round removes, that of trees whose size is above ``large``, and that
        of trees above ``huge``, most of whose weights are near zero.
    negligible : float
        Smaller weights are removed before the first round.
    exact_factor, exact_more : float, int
        Exact deletion costs are computed for ``exact_factor`` times the pruning steps that a
        round needs, and ``exact_more`` more.
    """

    ridge: float = 0.3
    refit_steps: int = 6
    refit_decrease: float = 1e-5
    share: float = 0.13
    large_share: float = 0.25
    huge_share: float = 0.5
    large: float = 90
    huge: float = 1000
    negligible: float = 0.02
    exact_factor: float = 3.0
    exact_more: int = 12

    def share_of(self, size: float) -> float:
        """Part of the size that a round removes."""
        if size > self.huge:
            return self.huge_share
        return self.large_share if size > self.large else self.share


@dataclass(frozen=True)
class SplicingOptions:
    """Trees within limits of their size.

    Attributes
    ----------
    share : float
        Part of what exceeds a limit that a round removes.
    outs, ins : int
        The cheapest features of a tree for which an exchange is tried, and the most promising
        columns that are tried in the place of each.
    steps, decrease : int, float
        L-BFGS steps of a tree in which a feature was exchanged.
    least_gain : float
        An exchange must lower the value by this part of the noise threshold of a feature: what is
        less is as likely an accident of the rows.
    rounds, compared_rounds : int
        Most exchanges, and where trees are only compared.
    exact_factor, exact_more : int
        Exact deletion costs are computed for ``exact_factor`` times the features that a round
        removes, and ``exact_more`` more.
    """

    share: float = 0.3
    outs: int = 3
    ins: int = 2
    steps: int = 8
    decrease: float = 1e-5
    least_gain: float = 0.02
    rounds: int = 12
    compared_rounds: int = 5
    exact_factor: int = 2
    exact_more: int = 4

    def rounds_of(self, *, compared: bool) -> int:
        """Most exchanges of a tree."""
        return self.compared_rounds if compared else self.rounds


@dataclass(frozen=True)
class RuleOptions:
    """Trees that keep rules about variables.

    Attributes
    ----------
    keepers : int
        Members of sets of which one may stay that are kept in turn, beside the choice by deletion
        costs; each costs an elimination of its own.
    """

    keepers: int = 3


@dataclass(frozen=True)
class FinalOptions:
    """The last descents of the trees that were taken from a path.

    Attributes
    ----------
    steps, decrease : int, float
        The final fit of a tree.
    decrease_per_tol : float
        A descent may end earlier for a rough tolerance: ``decrease`` is at least this times it.
    rough_tol : float
        From this tolerance on no Newton steps follow.
    fine_decrease : float
        Decrease where a tree has too many parameters for Newton steps.
    many, many_per_tol, many_work : int, float, float
        With more rows the descent ends at a decrease of ``many_per_tol`` times the tolerance: what
        is left is far below the sampling error, and each pass takes long. Newton steps follow up to
        this product of rows, branches and free parameters.
    small_loss : float
        Below this mean log-loss, a tenth of log 2, the decrease that ends a descent over more than
        ``many`` rows is relative to this value.
    compared_steps, compared_decrease : int, float
        The same where trees are only compared.
    compared_trees : int
        Points of a path that are compared at the ridge of a problem, if it is not the path's.
    sparse_starts : int
        Points of a path from which proximal steps start too: they may end sparser than the winner.
    """

    steps: int = 1000
    decrease: float = 1e-10
    decrease_per_tol: float = 1e-4
    rough_tol: float = 1e-3
    fine_decrease: float = 1e-13
    many: int = 3_000
    many_per_tol: float = 1.0
    many_work: float = 1e7
    small_loss: float = 0.07
    compared_steps: int = 12
    compared_decrease: float = 1e-5
    compared_trees: int = 3
    sparse_starts: int = 3


@dataclass(frozen=True)
class FisherOptions:
    """When the Fisher information preconditions a descent.

    Attributes
    ----------
    most_parameters : int
        Most free parameters.
    worth : float
        Products of the matrix, for each row, that one step and branch less is worth.
    """

    most_parameters: int = 160
    worth: float = 50.0

    def pays(self, n_parameters: int, n_branches: int, max_iter: int) -> bool:
        """Whether the matrix costs less than the steps that it saves."""
        affordable = n_parameters**2 <= self.worth * n_branches * max_iter
        return n_parameters <= self.most_parameters and affordable


@dataclass(frozen=True)
class NewtonOptions:
    """Newton steps for the last digits.

    Attributes
    ----------
    most_parameters : int
        Most free parameters.
    most_work : float
        Largest product of rows, branches and free parameters.
    steps : int
        Most steps.
    difference : float
        Relative step of central differences, for the Hessian over rows of an engine.
    flat : float
        Curvature below this part of the largest counts as zero.
    """

    most_parameters: int = 300
    most_work: float = 2e8
    steps: int = 8
    difference: float = 1e-6
    flat: float = 1e-11

    def affordable(self, n_parameters: int, n_rows: int, n_branches: int) -> bool:
        """Whether the Hessian is cheap enough."""
        work = n_rows * n_branches * n_parameters
        return n_parameters <= self.most_parameters and work <= self.most_work


@dataclass(frozen=True)
class SubsampledNewtonOptions:
    """Newton steps with the Hessian of a sample.

    Attributes
    ----------
    most_parameters : int
        Most free parameters of which a Hessian is computed.
    rounding : float
        Relative rounding of the value, where an engine does not state its own.
    flatter : float
        A step that leaves the value at the same level must lower the size of the slope along it by
        this factor.
    slow, far, renewals : float, float, int
        Where a step lowers the largest derivative by less than the factor ``slow``, and the value
        by more than the part ``far``, the Hessian is computed anew: ``renewals`` times at most, the
        first one included.
        Nearer to the minimum pairs of steps know more than a sample does.
    damping : float
        Damping of the next Hessian after a step that had to be shortened.
    steps : int
        Most steps: more of them find less than the rows leave open.
    pairs : int
        Pairs of steps and gradient changes that are kept.
    flat : float
        Curvature below this part of the largest counts as zero, in units of equal diagonal.
    stalls, patience : int
        Steps of too small a decrease in a row that end a descent; the second with a tolerance,
        while the largest derivative is not halved either.
    """

    most_parameters: int = 1200
    rounding: float = 1e-12
    flatter: float = 0.9
    slow: float = 0.2
    far: float = 1e-7
    renewals: int = 8
    damping: float = 0.01
    steps: int = 50
    pairs: int = 60
    flat: float = 1e-11
    stalls: int = 2
    patience: int = 12


@dataclass(frozen=True)
class EngineOptions:
    """Descents over all rows of an engine.

    Attributes
    ----------
    hessian_part : float
        Fraction of the rows whose Hessian is computed: at least ``SettlingOptions.hessian_rows``
        rows, at most the middle sample.
    costly : float
        Products (rows times squared parameters) beyond which the Hessian comes from the first
        sample alone: pairs of steps correct it for less.
    near_steps, near_decrease : int, float
        Descent on the first sample, whose sampling error is larger than what this leaves.
    middle_decrease : float
        Decrease of a descent on the middle sample.
    newton : SubsampledNewtonOptions
    """

    hessian_part: float = 0.1
    costly: float = 2e10
    near_steps: int = 300
    near_decrease: float = 1e-7
    middle_decrease: float = 1e-6
    newton: SubsampledNewtonOptions = field(default_factory=SubsampledNewtonOptions)


@dataclass(frozen=True)
class SettlingOptions:
    """The last descent of a tree of many rows in memory.

    Attributes
    ----------
    lead_in : int
        Steps of L-BFGS before the first Newton step.
    hessian_rows, fewest : int
        Rows of the sample whose Hessian is computed, and at least so many of each class.
    worth : float
        Newton steps are taken if all Hessians cost at most so many products for each row and
        branch, about the cost of the steps of L-BFGS that they replace.
    newton : SubsampledNewtonOptions
    """

    lead_in: int = 20
    hessian_rows: int = 5_000
    fewest: int = 100
    worth: float = 1e4
    newton: SubsampledNewtonOptions = field(
        default_factory=lambda: SubsampledNewtonOptions(renewals=3, steps=100)
    )

    def pays(self, n_parameters: int, n_rows: int, n_branches: int) -> bool:
        """Whether the Hessians cost less than the steps that they save."""
        products = self.newton.renewals * min(n_rows, self.hessian_rows) * n_parameters**2
        few = n_parameters <= self.newton.most_parameters
        return few and products <= self.worth * n_rows * n_branches


@dataclass(frozen=True)
class ProximalOptions:
    """Proximal gradient steps and descents on the face they find.

    Attributes
    ----------
    steps, later_steps, rounds : int
        Proximal steps of the first round, of each later one, and the most rounds.
    look_back : int
        A step may raise the objective, but not above the largest of so many last values.
    sufficient : float
        Factor of the sufficient decrease.
    least_alpha, most_alpha : float
        Range of the spectral step parameter.
    face_steps : int
        Steps of L-BFGS-B on a face.
    look_every : int
        Evaluations between two looks at the clock.
    negligible : float
        Smaller weights are zero: in a branch that decides nothing, weights that cost only their
        ridge come near to zero and never reach it.
    tie : float
        Entries of a row this close to its maximum, relative to it, are tied.
    stalled : float
        A round that lowers the function by less than this part of it is the last.
    """

    steps: int = 500
    later_steps: int = 100
    rounds: int = 12
    look_back: int = 8
    sufficient: float = 1e-4
    least_alpha: float = 1e-8
    most_alpha: float = 1e12
    face_steps: int = 1000
    look_every: int = 20
    negligible: float = 1e-7
    tie: float = 1e-6
    stalled: float = 1e-14


@dataclass(frozen=True)
class RateOptions:
    """The augmented Lagrangian of minimum class rates.

    Attributes
    ----------
    first_weight : float
        First weight of the quadratic terms, in total row weights.
    factor, most : float
        Where a round improves the worst shortfall by less than ``factor``, the weight grows by it,
        up to ``most`` times the first.
    rounds : int
        Most updates of the multipliers.
    patience, nearer : int, float
        Rates that have not come nearer by the factor ``nearer`` in ``patience`` rounds are out of
        reach for a tree.
    trees : int
        Points of a path that are tried.
    expensive : float
        Where the rates raise the objective by more than this factor, the next tree is tried.
    noticed : float
        Where they raise it by more than this part, drawn trees are led there directly too.
    rough_tol : float
        Tolerance of a tree that is only compared with others.
    repriced : int
        Eliminations in which rates have the prices that were found before; a second one would
        lower the objective by less than 0.2 %.
    programs, program_decrease : int, float
        Most quadratic programs of a tree, and the decrease of the mean loss at which they end; the
        augmented Lagrangian gives the last digits.
    most_parameters : int
        Of more parameters a quadratic program takes longer than a descent.
    near, largest : float
        A point that misses a rate by more than ``near`` or has a larger parameter is not used.
    newton_steps : int
        Most Newton steps on the first-order conditions, which converge quadratically.
    exact : float
        They end where the mean loss has no slope above this and rates lack no more.
    difference : float
        Step of the differences that give their Hessian.
    flat : float
        Curvature below this part of the total weight is none: shares of a leaf sum to one.
    ordered_steps, ordered_decrease : int, float
        Most steps of a descent within a monotone order between two updates of the multipliers, and
        the decrease, as a part of the value, at which it ends.
    lengths : tuple of float
        Parts of a Newton step that are tried where each trial spares many passes over rows
        elsewhere.
    elsewhere : float
        Largest slope of the mean loss at which a tree of rows elsewhere is left as it is after its
        quadratic programs; descents to the last digits would take thousands of passes.
    at_bound : float
        What is nearer to a bound than this at the end of quadratic programs is at the bound.
    """

    first_weight: float = 10.0
    factor: float = 4.0
    most: float = 1e6
    rounds: int = 25
    patience: int = 8
    nearer: float = 0.8
    trees: int = 6
    expensive: float = 1.5
    noticed: float = 0.01
    rough_tol: float = 1e-3
    repriced: int = 1
    programs: int = 100
    program_decrease: float = 1e-9
    most_parameters: int = 150
    near: float = 1e-4
    largest: float = 1e4
    newton_steps: int = 12
    exact: float = 1e-11
    difference: float = 1e-6
    flat: float = 1e-12
    ordered_steps: int = 500
    ordered_decrease: float = 1e-12
    lengths: tuple[float, ...] = (1.0, 0.3, 0.1)
    elsewhere: float = 1e-6
    at_bound: float = 1e-9


@dataclass(frozen=True)
class EliminationOptions:
    """The options of all algorithms that ``EliminationSolver`` runs."""

    rows: SampleSizes = field(default_factory=SampleSizes)
    race: RaceOptions = field(default_factory=RaceOptions)
    growth: GrowthOptions = field(default_factory=GrowthOptions)
    screening: ScreeningOptions = field(default_factory=ScreeningOptions)
    path: PathOptions = field(default_factory=PathOptions)
    splicing: SplicingOptions = field(default_factory=SplicingOptions)
    rules: RuleOptions = field(default_factory=RuleOptions)
    final: FinalOptions = field(default_factory=FinalOptions)
    fisher: FisherOptions = field(default_factory=FisherOptions)
    newton: NewtonOptions = field(default_factory=NewtonOptions)
    settling: SettlingOptions = field(default_factory=SettlingOptions)
    engine: EngineOptions = field(default_factory=EngineOptions)
    proximal: ProximalOptions = field(default_factory=ProximalOptions)
    rates: RateOptions = field(default_factory=RateOptions)


DEFAULTS = EliminationOptions()
"""The options that apply where none are passed."""
