"""Accuracy and passes of a decoder on a task."""
