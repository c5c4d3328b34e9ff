"""The quick part of the battery: a few cases of every kind; python -m tests.battery runs all."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "sandbox"))  # attacks.py

from battery.command_lines import try_command_lines
from battery.faults import try_faults
from battery.formats import try_formats
from battery.kills import try_kills
from battery.outcome import Tally, Wrong


@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_refused_in_words() -> None:
    done = try_formats(12)
    assert not done.failed, "\n".join(done.failed)
    assert done.refused > done.tried / 3


@pytest.mark.filterwarnings("ignore")
def test_a_full_disk_is_said_and_the_same_command_goes_on() -> None:
    done = try_faults(("eval", "self-generate"), every=3)
    assert not done.failed, "\n".join(done.failed)
    assert done.tried > 4


@pytest.mark.filterwarnings("ignore")
def test_a_killed_command_ends_like_one_that_was_not() -> None:
    done = try_kills(1, ("self-generate", "push", "generate"))
    assert not done.failed, "\n".join(done.failed)
    assert done.tried == 3


@pytest.mark.filterwarnings("ignore")
def test_random_command_lines_end_with_a_line() -> None:
    done = try_command_lines(40)
    assert not done.failed, "\n".join(done.failed)


def test_the_battery_counts_what_fails() -> None:
    def wrong() -> None:
        raise Wrong("accepted nonsense")

    tally = Tally("any")
    for case in (wrong, lambda: {}["a"], lambda: None):
        tally.run("case", case)
    assert (tally.tried, tally.accepted, len(tally.failed)) == (3, 1, 2)
