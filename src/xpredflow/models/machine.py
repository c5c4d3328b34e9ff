"""What a device has to offer: memory that is free, and numbers that it multiplies fast."""

import ctypes
import os
import platform
from functools import cache

import torch

# Instructions that multiply bfloat16, by the names that torch has for them.
_BFLOAT16 = ("avx512_bf16", "amx_bf16", "avx10_2", "bf16", "arm_bf16", "neon_bf16", "sve_bf16")


def free_bytes(device: torch.device) -> int | None:
    """What can still be allocated on a device; None where it does not say."""
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + held
    if device.type == "cpu":
        try:
            with open("/proc/meminfo") as file:
                facts = dict(line.split(":", 1) for line in file)
            return int(facts["MemAvailable"].split()[0]) * 1024
        except (OSError, KeyError):  # no Linux: what is not used by anyone is a lower bound
            names = getattr(os, "sysconf_names", {})
            if "SC_AVPHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
                return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


# glibc's malloc.h: numbers of its settings, and what they are set to.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES, _LARGEST_KEPT = 2**28, 2**25  # the latter is the most that glibc takes


@cache
def keep_freed_memory() -> bool:
    """Have glibc keep some memory that tensors leave behind, for the next ones; once per process.

    By default it hands back all that a layer frees and asks the kernel for it again, page by page:
    a third of a small model's pass at batch 32. Whoever set MALLOC_... or has another allocator is
    left alone. False where nothing was changed.
    """
    if any(name.startswith("MALLOC_") for name in os.environ) or "LD_PRELOAD" in os.environ:
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no glibc
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT) and mallopt(_TRIM_THRESHOLD, _KEPT_BYTES))


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for it; elsewhere torch takes detours."""
    ask = getattr(torch.cpu, "get_capabilities", None)  # not in every version of torch
    if ask is None:
        return platform.machine() not in ("x86_64", "AMD64")
    found = ask()
    return any(found.get(name, False) for name in _BFLOAT16)
