"""Compiled descents on the faces of the penalties: an active-set method, L-BFGS and Newton steps.

Read in this order:

    faces      which coefficients are fixed, free or tied: the active set
    objective  the smooth part: loss, rate terms, proximal term, ridge
    newton     Newton directions on a face
    descent    the state of a descent, L-BFGS directions, steps and their limits, the compiled loop
    rated      the smooth part under requirements on rates, for rows elsewhere
    soft_leaves  leaves with class distributions, for the log-loss
"""
