"""Settings shared by every test: hypothesis always draws the same examples."""

from hypothesis import settings

# The first call of a compiled function takes seconds, so that no deadline can be kept.
settings.register_profile("softsplit", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("softsplit")
