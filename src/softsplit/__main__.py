"""``python -m softsplit``."""

from softsplit.cli import main

if __name__ == "__main__":
    main()
