"""Tasks that are generated without end: minicode and minimath."""
