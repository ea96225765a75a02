"""The parameters of the estimators: one table, which all that speaks of parameters reads."""
