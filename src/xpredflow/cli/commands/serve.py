"""`xpredflow serve`: an OpenAI-compatible server."""

from typing import Annotated, Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import given, merged

Text = str | None


def serve(
    model: shared.Model = None,
    decoder: shared.Decoder = None,
    host: Annotated[
        Text, typer.Option(help="Address to listen on; default: 127.0.0.1. Others need a token.")
    ] = None,
    port: Annotated[
        Text, typer.Option(metavar="N", help="Port; default: 8000. 0: any that is free.")
    ] = None,
    token: Annotated[
        Text,
        typer.Option(
            envvar="XPREDFLOW_TOKEN",
            help="What clients must send as API key; better given in the environment.",
        ),
    ] = None,
    max_batch: Annotated[
        Text, typer.Option(metavar="N", help="Rows in one forward pass; default: 8.")
    ] = None,
    gen_length: Annotated[
        Text,
        typer.Option(metavar="N", help="Tokens of an answer where a request does not say."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=VALUE",
            help="Any other limit, repeatable: max_queue, max_choices, max_prompt_length,"
            " max_gen_length, max_seconds, max_body, drain_seconds.",
        ),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option("--ray", metavar="N", min=1, help="Decode in N replicas of a Ray cluster."),
    ] = None,
    dtype: shared.Dtype = None,
    device: shared.Device = None,
    device_map: shared.DeviceMap = None,
    tensor_parallel: shared.TensorParallel = False,
    revision: shared.Revision = None,
    threads: shared.Threads = None,
) -> None:
    """Serve a model over HTTP, as the OpenAI API does: chat, completions, streams.

    Answers equal those of `xpredflow generate` with the same options. SIGTERM or Ctrl-C lets open
    requests finish. Log lines are JSON, on standard error.

    \b
    Examples:
      xpredflow serve
      xpredflow serve --model tiny-aligned --decoder threshold:0.9 --port 8080
      XPREDFLOW_TOKEN=a-long-secret xpredflow serve --host 0.0.0.0 --max-batch 16
      xpredflow serve --limit max_queue=256 --limit max_seconds=60
      xpredflow serve --ray 2
      torchrun --nproc_per_node 2 -m xpredflow serve --tensor-parallel
    """
    named = given({"host": host, "port": port, "token": token, "max_batch": max_batch})
    settings = merged(named, limit, "--limit", "max_queue=64")
    where = {"device": device, "device_map": device_map, "tensor_parallel": tensor_parallel or None}
    source = given({"source": model, "dtype": dtype, "revision": revision, **where})
    _serve(source, decoder, given({"gen_length": gen_length}), settings, replicas, threads)


def _serve(
    source: dict[str, Any],
    decoder: str | None,
    options: dict[str, Any],
    settings: dict[str, Any],
    replicas: int | None,
    threads: int | None,
) -> None:
    """Everything that can be wrong is looked at before the model loads."""
    from xpredflow.cli.progress import load_model
    from xpredflow.engine.request import resolve
    from xpredflow.errors import InputError
    from xpredflow.processes import join_processes
    from xpredflow.serve.config import ServeConfig
    from xpredflow.settings import configured

    config = configured(ServeConfig, settings, "the server")
    resolve(decoder, options)
    try:
        from xpredflow.serve.server import listen, serve_on
    except ModuleNotFoundError as error:
        raise InputError(
            f"the server needs the package {error.name!r}: pip install 'xpredflow[serve]'"
        ) from None
    if "tensor_parallel" in source:
        if replicas is not None:
            raise InputError("--ray and --tensor-parallel: give one of the two")
        if join_processes().rank > 0:
            load_model(source)  # computes its part of the passes until the server ends
    listener = listen(config)
    if replicas is not None:
        from xpredflow.serve.replicas import serve_replicas

        serve_replicas(source, decoder, options, config, listener, replicas)
        return
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    from xpredflow.engine.engine import Engine

    serve_on(listener, Engine(load_model(source), decoder=decoder, **options), config)
