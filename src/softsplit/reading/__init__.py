"""A fitted tree as plain data, its predictions, texts, explanations and simpler forms."""
