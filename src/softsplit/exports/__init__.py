"""A fitted tree as code without dependencies: SQL, Python, JavaScript, C, and Excel workbooks.

One program of a few lines (program.py) is made of the tree, and each language prints it:

    cells -> coded columns -> scores -> gates -> mixture of the leaves -> class, probabilities
"""
