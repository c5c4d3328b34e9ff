"""Small modules that are none of ours: transformers' classes with random weights, and our own."""

from typing import Any

import torch
from torch import Tensor, nn

VOCABULARY, MASK, EOS = 90, 88, 87
SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
MASKED = ["bert", "modernbert", "roberta"]
CAUSAL = ["llama", "qwen2"]


def transformers_module(kind: str, **changes: Any) -> Any:
    """A model with its language modelling head; larger weights than usual make it lively."""
    import transformers as hf

    config = {**SMALL, **changes}
    torch.manual_seed(1)
    match kind:
        case "bert":
            made = hf.BertForMaskedLM(hf.BertConfig(**config))
        case "roberta":
            made = hf.RobertaForMaskedLM(hf.RobertaConfig(**config, pad_token_id=1))
        case "modernbert":
            special = dict.fromkeys(("pad_token_id", "bos_token_id", "cls_token_id"), 0)
            special |= dict.fromkeys(("eos_token_id", "sep_token_id"), EOS)
            made = hf.ModernBertForMaskedLM(hf.ModernBertConfig(**config, **special))
        case "llama":
            made = hf.LlamaForCausalLM(hf.LlamaConfig(**config, num_key_value_heads=2))
        case _:
            made = hf.Qwen2ForCausalLM(hf.Qwen2Config(**config, num_key_value_heads=2))
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0.0, 0.2)
    return made.eval()


class Mean(nn.Module):
    """Every position sees its own input, where it stands, and the mean of all inputs.

    It knows no masks: padding would count as text.
    """

    def __init__(self, vocabulary: int = VOCABULARY, width: int = 16, out: int | None = None):
        super().__init__()
        draw = torch.Generator().manual_seed(3)
        self.tokens = nn.Embedding(vocabulary, width)
        self.head = nn.Linear(width, out or vocabulary, bias=False)
        with torch.no_grad():
            self.tokens.weight.normal_(generator=draw)
            self.head.weight.normal_(generator=draw)
        self.places = nn.Parameter(torch.randn(64, width, generator=draw))

    def forward(self, inputs_embeds: Tensor) -> Tensor:
        mean = inputs_embeds.mean(1, keepdim=True)
        return self.head(torch.tanh(inputs_embeds + mean + self.places[: inputs_embeds.shape[1]]))


class Next(nn.Module):
    """Logits at a column name the token that is one more than the column's: they are shifted."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(10, 10)
        with torch.no_grad():
            self.tokens.weight.copy_(torch.eye(10))

    def forward(self, inputs_embeds: Tensor) -> dict[str, Tensor]:
        return {"logits": 9 * inputs_embeds.roll(1, -1)}
