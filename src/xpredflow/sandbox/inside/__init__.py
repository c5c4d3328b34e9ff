"""The code that runs inside the sandbox. Standard library only: a bare interpreter loads it."""
