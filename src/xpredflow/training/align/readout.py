"""softmax(Z)·W_e against the token that stands there, a few positions at a time.

All logits of a batch at once would be the largest tensor of training by far: here only `chunk`
positions have logits at any time, in the forward and in the backward pass. With

    p = softmax(h·Wᵀ),   d = p·W_e − W_e[x0],   L = Σ mean(d²),   a = (2/E)·d·W_eᵀ

the gradient is ∂L/∂z = p ⊙ (a − p·a), so it is at hand as soon as p is: both gradients, ∂L/∂h and
∂L/∂W, are summed up on the way forward and the head is never multiplied a second time.

Where p(x0) is next to nothing that gradient vanishes too, however wrong the prediction is. A
cross-entropy may be added at chosen positions, whose gradient p − 1 at x0 does not. And where
predictions r must stay as they were, KL(r ‖ p) may be added: of r its K likeliest tokens are known,
the others count as one.

Dimension names beside those of types.py: P positions of all rows, C of one chunk, K tokens.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from xpredflow.training.align.config import CHUNK

REST = 1e-6  # 1 − Σ of probabilities in fp32 is not to be trusted below
TINY = 1e-30  # probabilities of which a logarithm can be taken


class Readout(NamedTuple):
    """What was read at each position; only `total`, what is minimised, has a gradient.

    `error` is the squared distance from W_e[x0], averaged over the dimensions of the embedding.
    """

    total: Float[Tensor, ""]
    error: Float[Tensor, " P"]
    cross_entropy: Float[Tensor, " P"]
    token: Int[Tensor, " P"]
    top: "Top"


class Top(NamedTuple):
    """The K likeliest tokens and their log-probabilities, as far as they were asked for."""

    tokens: Int[Tensor, "P K"]
    log_prob: Float[Tensor, "P K"]


class ExtraTerms(NamedTuple):
    """What else is minimised, position by position, beside the error."""

    entropy_weight: Float[Tensor, " P"] | None = None  # of the cross-entropy with the token
    keep_weight: Float[Tensor, " P"] | None = None  # of the divergence from `keep`
    keep: Top | None = None

    def part(self, chosen: slice) -> "ExtraTerms":
        """Those of some positions."""
        keep = None if self.keep is None else Top(*(of[chosen] for of in self.keep))
        entropy, weight = (None if w is None else w[chosen] for w in self[:2])
        return ExtraTerms(entropy, weight, keep)


NO_EXTRAS = ExtraTerms()


class Tables(NamedTuple):
    """The head W, the frozen embedding table W_e, and the mask token.

    The mask's logit counts as -inf, because decoding rules it out too: what is aligned is the
    very distribution that will be decoded from.
    """

    head: Float[Tensor, "V E"]
    embedding: Float[Tensor, "V E"]
    mask: int


def read_out(
    hidden: Float[Tensor, "P E"],
    target: Int[Tensor, " P"],
    tables: Tables,
    chunk: int = CHUNK,
    extras: ExtraTerms = NO_EXTRAS,
    top: int = 0,
) -> Readout:
    """Errors and cross-entropies at the positions of `hidden`; `total` can be differentiated once.

    It is the sum of the errors and of what the extras add; `top` tokens are told on request.
    Matrices are multiplied in autocast's dtype, if that is on; everything else is at least fp32.
    """
    device = hidden.device.type
    cast = torch.is_autocast_enabled(device)
    compute = torch.get_autocast_dtype(device) if cast else hidden.dtype
    how = _How(chunk, compute, torch.is_grad_enabled(), top, extras)
    values: Any = _Chunked.apply(hidden, tables.head, target, tables, how)
    total, error, entropy, token, *likeliest = values
    return Readout(total, error, entropy, token, Top(*likeliest))


class _How(NamedTuple):
    chunk: int
    compute: torch.dtype
    with_gradient: bool
    top: int
    extras: ExtraTerms


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Float[Tensor, "P E"],
        head: Float[Tensor, "V E"],
        target: Int[Tensor, " P"],
        tables: Tables,
        how: _How,
    ) -> tuple[Tensor, ...]:
        compute = how.compute
        tables = Tables(head.to(compute), tables.embedding.detach().to(compute), tables.mask)
        wants = [how.with_gradient and wanted for wanted in ctx.needs_input_grad[:2]]
        of_hidden = torch.empty_like(hidden) if wants[0] else None
        # summed up over chunks, and a sharded head is at hand in bf16 alone
        wide = torch.promote_types(head.dtype, torch.float32)
        of_head = torch.zeros_like(head, dtype=wide) if wants[1] else None
        ctx.dtype = head.dtype
        read = []
        with torch.autocast(hidden.device.type, enabled=False):
            for start in range(0, len(hidden), how.chunk):
                part = slice(start, start + how.chunk)
                into = (None if of_hidden is None else of_hidden[part], of_head)
                asked = (target[part], how.extras.part(part), how.top)
                read.append(_read_chunk(hidden[part].to(compute), asked, tables, into))
        ctx.save_for_backward(of_hidden, of_head)
        added, *values = (torch.cat(values) for values in zip(*read, strict=True))
        ctx.mark_non_differentiable(*values)
        return (values[0] + added).sum(), *values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # In place: a second copy of the head's gradient would be the largest tensor here. Should
        # anyone differentiate twice, torch notices the change and raises.
        scaled = [g if g is None else g.mul_(gradients[0]) for g in ctx.saved_tensors]
        of_hidden, of_head = scaled
        return of_hidden, None if of_head is None else of_head.to(ctx.dtype), None, None, None


def _read_chunk(
    h: Float[Tensor, "C E"],
    asked: tuple[Tensor, ExtraTerms, int],
    tables: Tables,
    into: tuple[Tensor | None, Tensor | None],
) -> list[Tensor]:
    """What extras add, error, cross-entropy, token and likeliest; gradients go `into` their places.

    A function of its own so that its tables are gone before those of the next chunk are made.
    """
    (target, extras, top), (of_hidden, of_head) = asked, into
    p, error, entropy, token, d = _predict(h, target, tables)
    likeliest = p.topk(top)
    values = [torch.zeros_like(error), error, entropy, token]
    values += [likeliest.indices, likeliest.values.clamp(min=TINY).log()]
    wants_gradient = of_hidden is not None or of_head is not None
    dz = _logit_gradient(p, d, tables) if wants_gradient else torch.zeros(0)
    if extras.entropy_weight is not None:
        weight = extras.entropy_weight.to(p)
        values[0] += weight * entropy
        if wants_gradient:
            dz.addcmul_(p, weight.unsqueeze(1))
            dz[torch.arange(len(p), device=p.device), target] -= weight
    if extras.keep is not None and extras.keep_weight is not None:
        values[0] += _keep(p, extras.keep, extras.keep_weight.to(p), dz if wants_gradient else None)
    if not wants_gradient:
        return values
    dz = dz.to(h.dtype)
    if of_hidden is not None:
        of_hidden.copy_(dz @ tables.head)
    if of_head is not None and of_head.dtype == h.dtype:
        of_head.addmm_(dz.T, h)
    elif of_head is not None:
        of_head += dz.T @ h
    return values


def _keep(
    p: Float[Tensor, "C V"], kept: Top, weight: Float[Tensor, " C"], dz: Tensor | None
) -> Float[Tensor, " C"]:
    """weight · KL(r ‖ p), with all tokens outside of `kept` as one; its gradient is added to dz.

    ∂KL/∂z is p − r at the kept tokens; the others share p_rest − r_rest as they share p_rest.
    """
    r, ours = kept.log_prob.to(p).exp(), p.gather(1, kept.tokens)
    r_rest, rest = ((1 - x.sum(-1)).clamp(min=REST) for x in (r, ours))
    lost = (r * (kept.log_prob.to(p) - ours.clamp(min=TINY).log())).sum(-1)
    lost += r_rest * (r_rest / rest).log()
    if dz is not None:
        share = 1 - r_rest / rest
        dz.addcmul_(p, (weight * share).unsqueeze(1))
        at_kept = ours - r - share.unsqueeze(1) * ours
        dz.scatter_add_(1, kept.tokens, weight.unsqueeze(1) * at_kept)
    return weight * lost


def _predict(
    h: Float[Tensor, "C E"], target: Int[Tensor, " C"], tables: Tables
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """p, then error, cross-entropy and token, then d.

    (p − 1 at x0)·W_e is the distance from W_e[x0] without a difference of large numbers, which
    bf16 would round away where the prediction is nearly right.
    """
    wide = torch.promote_types(h.dtype, torch.float32)
    z = (h @ tables.head.T).to(wide)
    z[:, tables.mask] = -torch.inf
    token = z.argmax(-1)
    z -= z.logsumexp(-1, keepdim=True)
    rows = torch.arange(len(z), device=z.device)
    entropy = -z[rows, target]
    p = z.exp_()
    right = p[rows, target]
    p[rows, target] = right - 1
    d = (p.to(h.dtype) @ tables.embedding).to(wide)
    p[rows, target] = right
    return p, d.square().mean(-1), entropy, token, d


def _logit_gradient(
    p: Float[Tensor, "C V"], d: Float[Tensor, "C E"], tables: Tables
) -> Float[Tensor, "C V"]:
    """∂L/∂z = p ⊙ (a − p·a)."""
    scaled = (d * (2 / d.shape[-1])).to(tables.embedding.dtype)
    a = (scaled @ tables.embedding.T).to(p.dtype)
    mean = torch.bmm(p.unsqueeze(1), a.unsqueeze(2)).squeeze(2)  # without a table of products
    return a.sub_(mean).mul_(p)
