"""Trees for numbers with linear leaves: the deviance expected over the leaves, by elimination.

Read in this order: ``problem.py`` (columns, trees, the objective and its gradient), ``descent.py``,
``removal.py`` (deletion costs), ``starts.py``, ``path.py``, ``walk.py`` (the tree that is used).
"""
