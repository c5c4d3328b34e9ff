"""minicode: a request for a Python function, graded by running hidden tests."""
