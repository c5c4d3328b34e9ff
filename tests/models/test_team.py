"""What the first of several processes tells the others, without any others."""

import pytest
import torch

from xpredflow.models import team
from xpredflow.models.quantize import refuse_quantised
from xpredflow.models.team import OutOfStep, Team
from xpredflow.processes import Share

INPUTS, PLACES, COLUMNS = torch.zeros(1, 3, 2), torch.arange(3)[None], torch.arange(2)[None]


@pytest.fixture
def told(monkeypatch):
    """The messages of the team that comes with them."""
    messages = []
    monkeypatch.setattr(team, "join_processes", lambda: Share(0, 2))
    monkeypatch.setattr(team, "before_leaving", lambda last_word: None)
    monkeypatch.setattr(team.dist, "new_group", lambda **_: None)
    monkeypatch.setattr(team.dist, "broadcast", lambda tensor, src: None)
    monkeypatch.setattr(Team, "_send", lambda self, message: messages.append(message))
    return Team(), messages


def test_positions_are_told_once(told):
    first, messages = told
    other = PLACES.clone()
    for places in (PLACES, PLACES, other, PLACES):
        with first.told(INPUTS, places, COLUMNS):
            pass
    PLACES.add_(0)  # written to, so that what others made of them may be wrong
    with first.told(INPUTS, PLACES, COLUMNS):
        pass
    assert [bool(message.new) for message in messages] == [True, False, True, False, True]
    assert [message.places for message in messages] == [0, 0, 1, 0, 2]


def test_a_cache_lives_as_long_as_the_first_one(told):
    first, messages = told

    class Cache:
        pass

    cache = Cache()
    first.share_cache(cache, 4, 32)
    with first.told(INPUTS, PLACES, COLUMNS, cache, torch.zeros(1)):
        pass
    del cache
    with first.told(INPUTS, PLACES, COLUMNS):
        pass
    made, used, later = messages
    assert (made.number, made.slots, made.length) == (0, 4, 32)
    assert (used.cache, used.dropped) == (0, [])
    assert (later.cache, later.dropped) == (None, [0])


def test_nothing_is_asked_of_processes_that_wait_for_a_sum(told):
    first, messages = told
    with pytest.raises(ValueError, match="anything"), first.told(INPUTS, PLACES, COLUMNS):
        raise ValueError("anything but a lack of memory")
    with pytest.raises(OutOfStep, match="start them anew"), first.told(INPUTS, PLACES, COLUMNS):
        pass
    first.close()
    assert len(messages) == 1


def test_out_of_memory_is_the_same_for_all(told, monkeypatch):
    """Zeros are added to the sums that others wait for, and then everybody knows."""
    first, messages = told
    sums = []
    monkeypatch.setattr(team.dist, "all_reduce", lambda tensor, group=None: sums.append(tensor))
    first._sums, first._dtype = 3, INPUTS.dtype
    with pytest.raises(torch.OutOfMemoryError):
        run_out(first, lambda: first._add_up(torch.nn.Identity(), (), torch.ones(1, 3, 2)))
    assert [tensor.tolist() for tensor in sums[1:]] == [[[[0, 0]] * 3]] * 2 + [[1]]
    with first.told(INPUTS, PLACES, COLUMNS):  # the next pass is as good as any
        first._agree(succeeded=True)
    with pytest.raises(OutOfStep, match="gathered"):
        run_out(first, lambda: first._agree(succeeded=True))
    with pytest.raises(OutOfStep, match="start them anew"), first.told(INPUTS, PLACES, COLUMNS):
        pass
    assert len(messages) == 3


def run_out(first, after):
    """A pass in which the first process runs out of memory."""
    with first.told(torch.ones(1, 3, 2), PLACES, COLUMNS):
        after()
        raise torch.OutOfMemoryError


def test_the_end_is_told_once(told):
    first, messages = told
    first.close()
    first.close()
    assert messages == [None]


def test_parts_of_weights_only_decode(told):
    class Model:
        team = told[0]

    with pytest.raises(Exception, match="loaded with tensor_parallel and cannot be saved"):
        refuse_quantised(Model(), "saved")
