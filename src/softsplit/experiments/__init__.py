"""The paper's experiments, and the reader's own: a spec in, rows in a store, tables and figures."""
