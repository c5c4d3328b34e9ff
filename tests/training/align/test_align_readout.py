"""The chunked readout against its definition, and how large its tensors get."""

import pytest
import torch
import torch.nn.functional as F
from builders import CONFIGS
from own_answers import own_answers
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from xpredflow.models import MaskedDiffusionModel, build
from xpredflow.training.align.objective import XPrediction
from xpredflow.training.align.readout import ExtraTerms, Tables, Top, read_out
from xpredflow.training.common.answer_batches import text_batch
from xpredflow.training.common.masking import draw_masks

POSITIONS, VOCABULARY, WIDTH, MASK = 11, 37, 6, 5


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    shapes = ((POSITIONS, WIDTH), (VOCABULARY, WIDTH), (VOCABULARY, WIDTH))
    hidden, head, table = (torch.randn(s, generator=draw).to(dtype) for s in shapes)
    target = torch.randint(6, VOCABULARY, (POSITIONS,), generator=draw)
    return hidden.requires_grad_(), head.requires_grad_(), table, target


def definition(hidden: Tensor, head: Tensor, table: Tensor, target: Tensor) -> tuple:
    """Errors and cross-entropies with all logits at once."""
    no_mask = torch.zeros(VOCABULARY).index_fill(0, torch.tensor([MASK]), -torch.inf)
    logits = hidden @ head.T + no_mask
    error = (logits.softmax(-1) @ table - table[target]).square().mean(-1)
    return error, F.cross_entropy(logits, target, reduction="none"), logits.argmax(-1)


@pytest.mark.parametrize("chunk", [1, 4, 11, 100])
def test_the_readout_and_its_gradients_are_the_definition(chunk: int) -> None:
    hidden, head, table, target = inputs()
    error, entropy, token = definition(hidden, head, table, target)
    wanted = torch.autograd.grad(3 * error.sum(), (hidden, head))
    read = read_out(hidden, target, Tables(head, table, MASK), chunk)
    torch.testing.assert_close(read.error, error)
    torch.testing.assert_close(read.total, error.sum())
    torch.testing.assert_close(read.cross_entropy, entropy)
    assert torch.equal(read.token, token)
    torch.testing.assert_close(torch.autograd.grad(3 * read.total, (hidden, head)), wanted)


def test_cross_entropy_can_be_added_at_chosen_positions() -> None:
    hidden, head, table, target = inputs()
    weight = torch.linspace(0, 2, POSITIONS, dtype=torch.float64)
    error, entropy, _ = definition(hidden, head, table, target)
    total = error.sum() + (weight * entropy).sum()
    wanted = torch.autograd.grad(total, (hidden, head))
    read = read_out(hidden, target, Tables(head, table, MASK), 4, ExtraTerms(weight))
    torch.testing.assert_close(read.total, total)
    torch.testing.assert_close(torch.autograd.grad(read.total, (hidden, head)), wanted)


@pytest.mark.parametrize("known", [1, 3, 20])
def test_predictions_can_be_kept_at_chosen_positions(known: int) -> None:
    """KL(r ‖ p) by its definition, over the known tokens of r and one cell for all others."""
    hidden, head, table, target = inputs()
    tables = Tables(head, table, MASK)
    before = read_out(hidden.detach().flip(0), target, tables, 4, top=known).top
    weight = torch.linspace(0, 2, POSITIONS, dtype=torch.float64)
    error, _, _ = definition(hidden, head, table, target)
    p = (hidden @ head.T).index_fill(1, torch.tensor([MASK]), -torch.inf).softmax(-1)
    r, ours = before.log_prob.exp(), p.gather(1, before.tokens)
    cells = [torch.cat([x, (1 - x.sum(-1, keepdim=True))], -1).clamp(min=1e-6) for x in (r, ours)]
    lost = (cells[0] * (cells[0] / cells[1]).log()).sum(-1)
    total = error.sum() + (weight * lost).sum()
    wanted = torch.autograd.grad(total, (hidden, head))
    read = read_out(hidden, target, tables, 4, ExtraTerms(keep_weight=weight, keep=before))
    torch.testing.assert_close(read.total, total, rtol=1e-5, atol=1e-5)
    found = torch.autograd.grad(read.total, (hidden, head))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_prediction_that_is_kept_has_no_gradient() -> None:
    hidden, head, table, target = inputs()
    tables = Tables(head, table, MASK)
    same = read_out(hidden.detach(), target, tables, top=3).top
    weight = torch.ones(POSITIONS, dtype=torch.float64)
    kept = read_out(hidden, target, tables, 4, ExtraTerms(keep_weight=weight, keep=same))
    plain = read_out(hidden, target, tables)
    torch.testing.assert_close(kept.total, plain.total)
    found = torch.autograd.grad(kept.total, (hidden, head))
    torch.testing.assert_close(found, torch.autograd.grad(plain.total, (hidden, head)))


def test_the_likeliest_tokens_are_told_on_request() -> None:
    hidden, head, table, target = inputs()
    _, _, token = definition(hidden, head, table, target)
    read = read_out(hidden, target, Tables(head, table, MASK), 4, top=2)
    assert isinstance(read.top, Top)
    assert torch.equal(read.top.tokens[:, 0], token)
    assert (read.top.log_prob[:, 0] >= read.top.log_prob[:, 1]).all()


def test_the_mask_token_is_never_read() -> None:
    hidden, head, table, target = inputs()
    with torch.no_grad():
        head[MASK] = 100 * hidden.sum(0)
        table[MASK] = 1e6
    read = read_out(hidden, target, Tables(head, table, MASK))
    assert not (read.token == MASK).any()
    assert read.error.max() < 100
    [gradient] = torch.autograd.grad(read.total, head)
    assert torch.equal(gradient[MASK], torch.zeros(WIDTH, dtype=torch.float64))


def test_the_table_and_a_frozen_head_get_no_gradient() -> None:
    hidden, head, table, target = inputs()
    table.requires_grad_()
    head.requires_grad_(False)
    read_out(hidden, target, Tables(head, table, MASK)).total.backward()
    assert table.grad is None
    assert head.grad is None
    assert hidden.grad is not None
    assert hidden.grad.abs().max() > 0


def test_without_gradients_the_same_is_read() -> None:
    hidden, head, table, target = inputs()
    read = read_out(hidden, target, Tables(head, table, MASK), 4)
    with torch.no_grad():
        again = read_out(hidden, target, Tables(head, table, MASK), 4)
    assert not again.total.requires_grad
    assert all(torch.equal(a, b) for a, b in zip(read[:4], again[:4], strict=True))


def test_a_nearly_right_prediction_keeps_its_small_error_in_bf16() -> None:
    """The distance is not a difference of two rounded embeddings."""
    table = torch.randn(VOCABULARY, WIDTH, generator=torch.Generator().manual_seed(1))
    target = torch.arange(6, 17)
    head = torch.eye(VOCABULARY)
    hidden = 9.0 * F.one_hot(target, VOCABULARY).float()
    logits = hidden.index_fill(1, torch.tensor([MASK]), -torch.inf)
    exact = ((logits.softmax(-1) @ table - table[target]).square()).mean(-1)
    wide = torch.zeros(VOCABULARY, VOCABULARY)
    wide[:, :WIDTH] = table
    with torch.autocast("cpu", torch.bfloat16):
        read = read_out(hidden, target, Tables(head, wide, MASK))
    torch.testing.assert_close(read.error * VOCABULARY / WIDTH, exact, rtol=0.05, atol=0)


class Largest(TorchDispatchMode):
    """The number of elements of the largest tensor that anything makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, Tensor):
                self.elements = max(self.elements, tensor.numel())
        return out


def test_no_tensor_has_logits_for_more_than_a_chunk() -> None:
    hidden, head, table, target = inputs(torch.float32)
    with Largest() as largest:
        read_out(hidden, target, Tables(head, table, MASK), chunk=7).total.backward()
    assert largest.elements == 7 * VOCABULARY
    with Largest() as largest:
        definition(hidden, head, table, target)[0].sum().backward()
    assert largest.elements == POSITIONS * VOCABULARY


@pytest.fixture(params=["llada", "llada2"])
def model(request) -> MaskedDiffusionModel:
    model = build(CONFIGS[request.param], seed=3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8 if parameter.ndim > 1 else 1)  # spread logits
    model.embedding.requires_grad_(False)
    return model


def test_the_objective_reads_all_response_positions(model: MaskedDiffusionModel) -> None:
    special, size = model.special, model.block_size
    draw = torch.Generator().manual_seed(0)
    noisy = draw_masks(text_batch(own_answers(6), special, size), size, special.eos, draw)
    total, masked = 0.0, []
    for i in range(6):
        row = noisy.rows(slice(i, i + 1))
        places = torch.arange(row.ids.shape[1]).unsqueeze(0)
        shown = row.ids.masked_fill(row.masked, special.mask)
        logits = model.logits(model.embedding[shown], row.positions, places)[row.candidates]
        logits[:, special.mask] = -torch.inf
        x0 = model.embedding[row.ids[row.candidates]]
        total += (logits.softmax(-1) @ model.embedding - x0).square().mean(-1).sum().item()
        masked.append(row.masked[row.candidates])
    read = XPrediction(model, chunk=5)(noisy)
    assert read.total.item() == pytest.approx(total, rel=1e-4)
    flags = torch.cat(masked)
    assert len(read.error) == len(flags)
    assert flags.any()
    assert not flags.all()


def test_checkpointing_changes_no_gradient(model: MaskedDiffusionModel) -> None:
    special, size = model.special, model.block_size
    draw = torch.Generator().manual_seed(0)
    noisy = draw_masks(text_batch(own_answers(3), special, size), size, special.eos, draw)
    parameters = [p for p in model.parameters() if p.requires_grad]
    plain = torch.autograd.grad(XPrediction(model)(noisy).total, parameters)
    model.checkpointing = True
    again = torch.autograd.grad(XPrediction(model)(noisy).total, parameters)
    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))
