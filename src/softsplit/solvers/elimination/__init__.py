"""The native solver of the log-loss: descents on a support that backward elimination reduces.

Read in this order:

1. ``solver.py``: ``EliminationSolver``, and ``EliminationRun``, all phases of one start.
2. ``path.py``: backward elimination, the heart of the method; ``deletion_costs.py`` below it.
3. ``splicing.py``: limits of the size, before a path begins.
4. ``race.py``: successive halving among starts and grown trees; ``screening.py``: on which columns.
   ``working_set.py``: which columns of a wide sparse table are trained on at all.
5. ``support_tree.py`` and ``objective.py``: a tree with its mask, and the function it minimises.

A change of what is removed, or in which order, needs 1 and 2 alone. The rest is optimisation:

* ``lbfgs.py``: compiled L-BFGS over rows in memory.
* ``descents.py``: descents over rows in memory or of an engine, with the budget between steps.
* ``bounded.py``: descents within bounds and a monotone order.
* ``second_order.py``: Hessian, Fisher information, Newton steps; ``subsampled_newton.py``: Newton
  steps with the Hessian of a sample.
* ``penalised.py``: other penalties (proximal gradient).
* ``rated_descents.py``: how a tree is led to where rates hold (augmented Lagrangian).
* ``options.py``: sizes of samples.
"""
