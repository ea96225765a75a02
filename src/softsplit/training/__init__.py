"""From validated rows to a trained tree."""
