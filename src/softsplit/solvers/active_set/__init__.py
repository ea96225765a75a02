"""Compiled descents on the faces of the penalties: an active-set method, L-BFGS and Newton steps.

Read in this order:

    faces        which coefficients are fixed, free or tied: the active set
    objective    the smooth part: loss, rate terms, proximal term, ridge; leaves of the log-loss
    rated        the same under requirements on rates, for rows elsewhere
    state        limits of a descent, and all that it knows
    directions   L-BFGS and Newton directions on a face
    descent      steps, and the loops around them
"""
