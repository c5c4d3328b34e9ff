"""python -m tests.battery [formats|faults|commands|programs|kills]...: all parts unless some."""

import os
import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS), *(str(TESTS / name) for name in ("models", "sandbox"))]
os.environ |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
os.environ["TOKENIZERS_PARALLELISM"] = "false"  # kills are forked


def main(names: list[str]) -> int:
    """Run the parts, print a line for each, then every failure; the exit code."""
    import torch

    from battery.command_lines import try_command_lines
    from battery.faults import try_faults
    from battery.formats import try_formats
    from battery.kills import try_kills
    from battery.programs import try_programs

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    parts = {
        "formats": lambda: try_formats(400),
        "faults": try_faults,
        "commands": lambda: try_command_lines(1000),
        "programs": try_programs,
        "kills": lambda: try_kills(3),
    }
    if unknown := [name for name in names if name not in parts]:
        print(f"no part {unknown[0]!r}: choose from {', '.join(parts)}", file=sys.stderr)
        return 2
    done = []
    for name in names or parts:
        done.append(parts[name]())
        print(done[-1].line(), flush=True)
    for failure in (failure for tally in done for failure in tally.failed):
        print(failure)
    return 1 if any(tally.failed for tally in done) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
