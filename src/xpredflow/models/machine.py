"""What a device has to offer: memory that is free, and numbers that it multiplies fast."""

import os
import platform

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


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for it; elsewhere torch takes detours."""
    ask = getattr(torch.cpu, "get_capabilities", None)  # not in every version of torch
    if ask is None:
        return platform.machine() not in ("x86_64", "AMD64")
    found = ask()
    return any(found.get(name, False) for name in _BFLOAT16)
