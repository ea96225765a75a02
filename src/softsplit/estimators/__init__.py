"""The estimators of scikit-learn's kind."""
