"""The training problem: what a tree costs, and what it must satisfy."""
