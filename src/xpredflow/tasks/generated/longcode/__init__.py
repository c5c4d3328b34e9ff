"""longcode: a request for several Python functions that call each other, graded by running."""
