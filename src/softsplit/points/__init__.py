"""Whole points in place of weights: every question becomes a small table that a person adds up.

Read in this order:

    readable    cuts, widths and starts that people use
    cells       the values of a variable, cut where any of its tables may change
    fits        weighted fits of whole points to targets
    likelihood  the log-likelihood of one question, its derivatives, its gate
    terms       the best tables of a variable under a quadratic model of it
    question    the search for the tables of one question
    tree        all questions of a soft tree, and its leaves
"""
