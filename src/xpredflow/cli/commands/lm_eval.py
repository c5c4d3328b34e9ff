"""`xpredflow lm-eval`: the lm-evaluation-harness with our model and our tasks in it."""

from typing import Annotated

import typer

# Everything behind the first word is lm-eval's, --help included.
SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def lm_eval(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="...", help="lm-eval's own arguments; `lm-eval run --help` lists them."
        ),
    ] = None,
) -> None:
    """Run lm-evaluation-harness tasks with our decoders: pip install 'xpredflow[eval]'.

    --model xpredflow takes in --model_args pretrained, decoder, dtype, quantize, device and
    revision, every option of the engine and of the decoder (`xpredflow decoders NAME` lists them),
    mc_num (masked copies per likelihood, which is an estimate), is_check_greedy, and
    passes_file=FILE for the forward passes of each answer. They win over a task's
    generation_kwargs.

    Our tasks need no network: xpredflow_minicode and xpredflow_minimath, and from local files
    xpredflow_humaneval, xpredflow_mbpp and xpredflow_gsm8k (each with _base for models without
    a chat template). Programs run in a sandbox; --unsafe-code-execution does without one.

    \b
    Examples:
      xpredflow lm-eval --model xpredflow --model_args pretrained=tiny,decoder=threshold \\
          --tasks xpredflow_minimath --apply_chat_template --limit 10
      xpredflow lm-eval --model xpredflow --model_args decoder=flow,policy=confidence,budget=1/4 \\
          --tasks xpredflow_minicode --apply_chat_template --metadata split=validation
      xpredflow lm-eval --model xpredflow --model_args pretrained=DIR,passes_file=passes.jsonl \\
          --tasks xpredflow_gsm8k --apply_chat_template --metadata gsm8k=test.jsonl
      xpredflow lm-eval ls tasks
    """
    from xpredflow.harness.command import run

    run(arguments or ["--help"])
