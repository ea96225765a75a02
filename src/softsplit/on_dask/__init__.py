"""Rows in the partitions of a Dask cluster: an engine, tables and estimators for them."""
