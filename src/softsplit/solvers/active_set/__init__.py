"""Compiled descents on the faces of the penalties: an active-set method, L-BFGS and Newton steps.

Read in this order:

    faces        which coefficients are fixed, free or tied: the active set
    objective    the smooth part: loss, rate terms, proximal term, ridge
    rated        the same under requirements on rates, for rows elsewhere
    newton       Newton directions on a face
    state        limits of a descent, and all that it knows
    lbfgs        L-BFGS directions
    descent      steps, and the loops around them
    soft_leaves  leaves with class distributions, for the log-loss
"""
