"""Where training rows live, and the sums over them that training needs."""
