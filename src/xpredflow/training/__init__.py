"""Trainings: each is a validated config, resumable at any kill, with a log that can be plotted."""
