"""Score cards made of a fitted tree."""
