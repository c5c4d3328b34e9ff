"""`--model xpredflow`: a masked diffusion model and a decoder behind the harness's interface."""

import logging
from pathlib import Path
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from tqdm import tqdm

from xpredflow.engine.capacity import MOST_ROWS
from xpredflow.engine.chat import chat_text, has_chat_template
from xpredflow.engine.loop import decode_steps
from xpredflow.engine.steps import Decoded
from xpredflow.errors import InputError
from xpredflow.harness.arguments import Arguments
from xpredflow.harness.likelihood import Pair, estimate, fit, is_greedy
from xpredflow.harness.passes import Answered, Passes
from xpredflow.harness.requests import Request, read_request
from xpredflow.models import embedded
from xpredflow.types import Model

log = logging.getLogger("lm_eval.xpredflow")  # below the harness's own: its handler shows it
HARNESS_DEVICE = "cuda:0"  # what the harness passes when nothing was said


class NotPossible(InputError, NotImplementedError):
    """What a masked diffusion model cannot give."""


class XpredflowLM(LM):
    """Decodes with any decoder of ours; likelihoods are estimates of a lower bound.

    `pretrained` is an embedded model, a directory, a hub id, or a loaded model. The other
    arguments are the fields of `arguments.Own`, of `engine.Options` and of the decoder. What is
    said here wins over a task's generation_kwargs.
    """

    def __init__(self, pretrained: str | Path | Model = embedded.DEFAULT, **arguments: Any) -> None:
        super().__init__()
        read = Arguments.read(arguments)
        self.own, self.options, self.settings = read.own, read.options, read.settings
        self.passes = Passes(None if self.own.passes_file is None else Path(self.own.passes_file))
        self.model = _load(pretrained, read) if isinstance(pretrained, str | Path) else pretrained
        if self.model.tokenizer is None:
            raise InputError(f"model {self.model.name!r} has no tokenizer, and tasks are text")
        self._device = self.model.embedding.device
        self._chat = False

    # Text in, text out

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Answers in the order of the requests; rows leave and join the batch as they finish."""
        parsed = [read_request(r.arguments[1], self.own.decoder, self.options) for r in requests]
        texts = [""] * len(requests)
        answered: list[Answered] = []
        failed = 0
        self._warn_of_plain_text()
        # all of them before the first pass: a prompt that cannot be decoded is reported now
        streams = self._streams(requests, parsed)
        with tqdm(total=len(requests), desc="decoding", disable=disable_tqdm) as bar:
            for done in (d for steps in streams for step in steps for d in step.finished):
                request, text = requests[done.row], parsed[done.row].cut(done.text)
                texts[done.row] = text
                failed += done.failed
                answered.append(_answered(request, done))
                self.cache_hook.add_partial("generate_until", request.args, text)
                bar.update()
        if failed:
            log.warning("%d of %d answers failed: logits were not finite", failed, len(requests))
        self.passes.add(answered)
        self._log_passes()
        return texts

    def _streams(self, requests: list[Instance], parsed: list[Request]) -> list[Any]:
        """One stream per set of options; a request keeps its number, and so its randomness."""
        groups: dict[tuple, dict[int, list[int]]] = {}
        cut = 0
        for number, (request, asked) in enumerate(zip(requests, parsed, strict=True)):
            ids = self._ids(request.arguments[0])
            length = dict(asked.options).get("gen_length", self.settings.gen_length)
            room = self.model.max_length - length
            cut += 0 < room < len(ids)
            groups.setdefault(asked.options, {})[number] = ids[-room:] if room > 0 else ids
        if cut:
            log.warning("%d prompts are too long for the model: their beginning was cut off", cut)
        return [
            decode_steps(
                self.model, ids, decoder=self.own.decoder, **{**self.options, **dict(options)}
            )
            for options, ids in groups.items()
        ]

    def _ids(self, text: str) -> list[int]:
        # ids rather than text: what the harness hands over is complete, template and all
        return self.model.tokenizer(text, add_special_tokens=False)["input_ids"] if text else []

    # Likelihood

    def loglikelihood(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """An estimate of a lower bound each (see `likelihood`), and whether greedy agrees."""
        pairs = [fit(self.model, self._pair(*request.arguments)) for request in requests]
        batch = self.settings.max_batch or MOST_ROWS
        bounds = estimate(
            self.model, pairs, samples=self.own.mc_num, seed=self.settings.seed, max_batch=batch
        )
        greedy = [False] * len(pairs)
        if self.own.is_check_greedy:
            greedy = is_greedy(self.model, pairs, max_batch=batch)
        answers = list(zip(bounds, greedy, strict=True))
        for request, answer in zip(requests, answers, strict=True):
            self.cache_hook.add_partial("loglikelihood", request.args, answer)
        return answers

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        """Not possible: a bound from masked copies is no perplexity, and would be read as one."""
        raise NotPossible(
            f"task {requests[0].task_name if requests else ''!r} measures perplexity"
            " (loglikelihood_rolling), which a masked diffusion model does not have: choose tasks"
            " of generate_until, or of loglikelihood and multiple_choice, which are estimated"
        )

    def _pair(self, context: str, continuation: str) -> Pair:
        """Split where the context's tokens end; its trailing spaces belong to the next word."""
        kept = context.rstrip()
        whole, before = self._ids(context + continuation), self._ids(kept)
        return Pair(whole[: len(before)], whole[len(before) :])

    # Chat

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """The conversation as the model's template writes it."""
        self._chat = True
        self._need_template()
        ends = "answer" if add_generation_prompt else "continued"
        return chat_text(self.model, chat_history, ends=ends)

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The template itself, for the harness's records."""
        if not chat_template:
            return None
        self._need_template()
        if isinstance(chat_template, str):
            raise InputError(
                f"--apply_chat_template {chat_template!r}: {self.model.name!r} has one template,"
                " without a name; give the flag alone"
            )
        return self.model.tokenizer.chat_template

    @property
    def tokenizer_name(self) -> str:
        """What distinguishes cached requests."""
        return self.model.name.replace("/", "__")

    def _need_template(self) -> None:
        if not has_chat_template(self.model):
            raise InputError(
                f"the tokenizer of {self.model.name!r} has no chat template: leave out"
                " --apply_chat_template, or add one to its tokenizer_config.json"
            )

    def _warn_of_plain_text(self) -> None:
        if has_chat_template(self.model) and not self._chat:
            log.warning(
                "%r has a chat template, but prompts go in as plain text: you may want"
                " --apply_chat_template",
                self.model.name,
            )

    # Records

    def get_model_info(self) -> dict[str, Any]:
        """Becomes part of the harness's results: what ran, and the forward passes it took."""
        return {
            "xpredflow": {
                "model": self.model.name,
                "decoder": self.own.decoder,
                "options": {name: str(value) for name, value in self.options.items()},
                "forward_passes": self.passes.by_task(),
            }
        }

    def _log_passes(self) -> None:
        for task, row in self.passes.by_task().items():
            log.info(
                "%s: %.1f forward passes per answer (median %g, max %d, %d answers, decoder %s)",
                *(task, row["mean"], row["median"], row["max"], row["answers"], self.own.decoder),
            )


# a call, not a decorator: its annotation would turn the class into a plain LM for type checkers
register_model("xpredflow")(XpredflowLM)


def _answered(request: Instance, done: Decoded) -> Answered:
    return Answered(request.task_name, request.doc_id, done.passes, len(done.ids), done.stop_reason)


def _load(source: str | Path, read: Arguments) -> Model:
    device = read.own.device
    if device == HARNESS_DEVICE and not torch.cuda.is_available():
        device = "cpu"
    given: dict[str, Any] = {
        "dtype": read.own.dtype,
        "quantize": read.own.quantize,
        "device": device,
        "revision": read.own.revision,
    }
    return embedded.load(source, **{k: v for k, v in given.items() if v is not None})
