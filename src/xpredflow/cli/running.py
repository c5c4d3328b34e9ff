"""The former home of `load_model`."""

from xpredflow.cli.progress import load_model

__all__ = ["load_model"]
