"""Changes of a fitted tree by hand."""
