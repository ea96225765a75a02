"""Compiled descents on the faces of the penalties: an active-set method, L-BFGS and Newton steps.

Read in this order:

    faces      which coefficients are fixed, free or tied: the active set
    objective  the smooth part: loss, rate terms, proximal term, ridge
    newton     Newton directions on a face
    descent    the state of a descent, L-BFGS directions, steps and their limits
    program    descents that follow one another, run by one compiled call
"""
