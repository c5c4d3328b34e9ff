"""Alignment: the model learns to keep its own clean tokens."""
