"""What is read from a fitted tree: outlines, equations, texts and layouts."""
