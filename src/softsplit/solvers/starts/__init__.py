"""Trees to start from.

``rules.py`` names the rules. ``grouping.py`` makes greedy trees for the expected cost and
``mixtures.py`` gentle ones for the log-loss; both assign classes to leaves by ``plans.py`` and fit
splits by ``logistic.py``.
"""
