"""Published benchmarks, from a file or the hub."""
