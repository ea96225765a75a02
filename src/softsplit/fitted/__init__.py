"""What training makes and files store: the tree, its walk, shares, rates and profile."""
