"""Trees by likelihood: splits and leaves descend together, and features leave by exact prices."""
