"""Pretraining of small models on generated tasks."""
