"""The two architectures once more, as plain loops over a dict of tensors, from their description.

Slow and literal on purpose: no batching tricks, no stacked experts, no code of ours.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Weights = dict[str, Tensor]


KeysAndValues = list[tuple[Tensor, Tensor]]  # layer by layer, of all positions


def llada(
    w: Weights,
    c: dict[str, Any],
    x: Tensor,
    frozen: KeysAndValues | None = None,
    fresh: range | None = None,
) -> Tensor:
    """Logits of every position of one row of embeddings (L, E).

    Keys and values outside the `fresh` positions are the frozen ones; all are put in their place.
    """
    is_fresh = torch.tensor([fresh is None or i in fresh for i in range(len(x))])[:, None, None]
    held = frozen[:] if frozen else []
    if frozen is not None:
        frozen.clear()
    heads, kv_heads, eps = c["n_heads"], c["n_kv_heads"], c["rms_norm_eps"]
    dim = c["d_model"] // heads
    everything = torch.ones(len(x), len(x), dtype=torch.bool)
    for i in range(c["n_layers"]):
        p = f"model.transformer.blocks.{i}."
        h = norm(x, w[p + "attn_norm.weight"], eps)
        q = (h @ w[p + "q_proj.weight"].T).view(-1, heads, dim)
        k = (h @ w[p + "k_proj.weight"].T).view(-1, kv_heads, dim)
        v = (h @ w[p + "v_proj.weight"].T).view(-1, kv_heads, dim)
        q, k = rope(q, c["rope_theta"], dim), rope(k, c["rope_theta"], dim)
        if held:
            k, v = torch.where(is_fresh, k, held[i][0]), torch.where(is_fresh, v, held[i][1])
        if frozen is not None:
            frozen.append((k, v))
        x = x + attention(q, k, v, everything) @ w[p + "attn_out.weight"].T
        h = norm(x, w[p + "ff_norm.weight"], eps)
        gate = F.silu(h @ w[p + "ff_proj.weight"].T)
        x = x + (gate * (h @ w[p + "up_proj.weight"].T)) @ w[p + "ff_out.weight"].T
    x = norm(x, w["model.transformer.ln_f.weight"], eps)
    return x @ w["model.transformer.ff_out.weight"].T


def llada2(w: Weights, c: dict[str, Any], x: Tensor) -> Tensor:
    """Logits of every position of one row of embeddings (L, E)."""
    heads, groups, dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    eps, rotated = c["rms_norm_eps"], int(c["head_dim"] * c.get("partial_rotary_factor", 0.5))
    block = torch.arange(len(x)) // c["block_size"]
    sees = block[None, :] <= block[:, None]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        h = norm(x, w[p + "input_layernorm.weight"], eps)
        fused = h @ w[p + "attention.query_key_value.weight"].T
        a, b = heads * dim, (heads + groups) * dim
        q, k = fused[:, :a].view(-1, heads, dim), fused[:, a:b].view(-1, groups, dim)
        v = fused[:, b:].view(-1, groups, dim)
        q = rope(norm(q, w[p + "attention.query_layernorm.weight"], eps), c["rope_theta"], rotated)
        k = rope(norm(k, w[p + "attention.key_layernorm.weight"], eps), c["rope_theta"], rotated)
        x = x + attention(q, k, v, sees) @ w[p + "attention.dense.weight"].T
        h = norm(x, w[p + "post_attention_layernorm.weight"], eps)
        dense = i < c["first_k_dense_replace"]
        x = x + (gated(w, p + "mlp.", h) if dense else mixture(w, c, p + "mlp.", h))
    return norm(x, w["model.norm.weight"], eps) @ w["lm_head.weight"].T


def mixture(w: Weights, c: dict[str, Any], p: str, h: Tensor) -> Tensor:
    """Token by token: group scores, kept groups, chosen experts, their weights."""
    size = c["num_experts"] // c["n_group"]
    rows = []
    for token in h:
        score = torch.sigmoid(w[p + "gate.weight"].float() @ token.float())
        biased = score + w[p + "gate.expert_bias"].float()
        group = [
            biased[g * size : (g + 1) * size].sort().values[-2:].sum() for g in range(c["n_group"])
        ]
        kept = sorted(range(c["n_group"]), key=lambda g: -float(group[g]))[: c["topk_group"]]
        candidates = [e for e in range(c["num_experts"]) if e // size in kept]
        chosen = sorted(candidates, key=lambda e: -float(biased[e]))[: c["num_experts_per_tok"]]
        total = sum(score[e] for e in chosen) + 1e-20 if len(chosen) > 1 else 1.0
        row = torch.zeros_like(token)
        for e in chosen:
            weight = score[e] / total * c["routed_scaling_factor"]
            row = row + weight * gated(w, f"{p}experts.{e}.", token[None])[0]
        rows.append(row)
    return torch.stack(rows) + gated(w, p + "shared_experts.", h)


def gated(w: Weights, p: str, h: Tensor) -> Tensor:
    gate, up = h @ w[p + "gate_proj.weight"].T, h @ w[p + "up_proj.weight"].T
    return (F.silu(gate) * up) @ w[p + "down_proj.weight"].T


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight


def rope(x: Tensor, theta: float, rotated: int) -> Tensor:
    """Pair dimension d with d + rotated/2 and turn the pair by position * theta^(-2d/rotated)."""
    out, half = x.clone(), rotated // 2
    for position in range(x.shape[0]):
        for d in range(half):
            angle = torch.tensor(position * theta ** (-2 * d / rotated))
            a, b = x[position, :, d], x[position, :, d + half]
            out[position, :, d] = a * angle.cos() - b * angle.sin()
            out[position, :, d + half] = b * angle.cos() + a * angle.sin()
    return out


def attention(q: Tensor, k: Tensor, v: Tensor, sees: Tensor) -> Tensor:
    heads, outputs = q.shape[1], []
    for head in range(heads):
        group = head * k.shape[1] // heads
        scores = q[:, head] @ k[:, group].T / q.shape[-1] ** 0.5
        outputs.append(scores.masked_fill(~sees, float("-inf")).softmax(-1) @ v[:, group])
    return torch.cat(outputs, dim=-1)
