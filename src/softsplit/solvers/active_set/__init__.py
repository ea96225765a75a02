"""Compiled descents on the faces of the penalties: an active-set method."""
