"""`python -m xpredflow`, which torchrun can start."""

from xpredflow.cli import main

main()
