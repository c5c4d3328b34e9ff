"""Shared by all tests: one thread (two workers share two cores) and a fixed hypothesis profile.

They count on the CPU's arithmetic: accelerators are hidden, from the processes they start too.
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("steady", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("steady")
