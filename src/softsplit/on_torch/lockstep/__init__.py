"""Many trees by likelihood at once, on a device: starts, strengths and folds move in lockstep."""
