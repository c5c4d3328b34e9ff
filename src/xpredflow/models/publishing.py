"""What is published of a checkpoint's directory, and how it gets to the Hugging Face hub."""

import json
import re
import shutil
from pathlib import Path

from xpredflow.errors import InputError
from xpredflow.files import read_object, replacing, write_atomically
from xpredflow.models.defaults import FILE
from xpredflow.models.shards import stored_tensors
from xpredflow.models.source import WEIGHTS, read_config

# What loading reads, and what people read; not the states and logs of a run.
PUBLISHED = [*WEIGHTS, "README.md", "LICENSE*", "NOTICE*"]
POLICY = "policy"  # the name of a policy beside the weights


def check_name(name: str) -> None:
    """Refuse what cannot be a model's name on the hub."""
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", name):
        raise InputError(f"name is {name!r}; expected owner/name, such as you/Qwen3-0.6B-flow")


def check_checkpoint(directory: Path) -> None:
    """Refuse a directory that nobody could load: no config.json, no weights, damaged ones."""
    if not directory.is_dir():
        raise InputError(
            f"no directory {str(directory)!r}; expected a checkpoint, such as runs/aligned/model"
        )
    read_config(directory)
    stored_tensors(directory)


def add_policy(directory: Path, weights: Path, description: Path) -> None:
    """Put a learned policy beside the weights and make it the one that they are decoded with.

    Rules of an earlier policy are taken out: a learned one brings those it was trained under.
    """
    for file in (weights, description):
        target = directory / f"{POLICY}{file.suffix}"
        if file.resolve() != target.resolve():
            with replacing(target) as temporary:
                shutil.copyfile(file, temporary)
    path = directory / FILE
    found = read_object(path, "mend or remove it") if path.is_file() else {}
    found.pop("rules", None)
    said = {**found, "decoder": "flow", "policy": f"learned:{POLICY}"}
    write_atomically(path, json.dumps(said, indent=2) + "\n")


def upload(directory: Path, name: str, *, private: bool = False) -> str:
    """Create the repository where there is none and upload; its address."""
    from huggingface_hub import HfApi  # slow to import

    hub = HfApi()
    try:
        address = str(hub.create_repo(name, private=private, exist_ok=True))
        hub.upload_folder(
            repo_id=name,
            folder_path=str(directory),
            allow_patterns=PUBLISHED,
            commit_message="Upload checkpoint and card",
        )
    # the hub's errors have no common base: connection, HTTP, missing token, bad name
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{name!r} could not be published ({type(error).__name__}: {reason}): check the"
            " connection, and that `hf auth login` was done by someone who may write there; the"
            " same command goes on"
        ) from error
    return address
