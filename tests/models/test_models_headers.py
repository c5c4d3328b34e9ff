"""Headers, indices and sizes that do not hold together are refused before anything is built."""

import json
import struct

import pytest
from builders import write_checkpoint
from safetensors.torch import load_file, save_file

import xpredflow.models as models
from xpredflow.errors import InputError
from xpredflow.models.embedded import assets


def config(**changes):
    def flaw(directory):
        file = directory / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))

    return flaw


def text_of(name, text):
    return lambda directory: (directory / name).write_text(text)


def one_file(directory):
    """All tensors in one file, whose header is taken apart."""
    tensors = {}
    for file in sorted(directory.glob("*.safetensors")):
        tensors |= load_file(file)
        file.unlink()
    (directory / "model.safetensors.index.json").unlink(missing_ok=True)
    path = directory / "model.safetensors"
    save_file(tensors, path)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return path, json.loads(data[8 : 8 + length]), data[8 + length :]


def put_together(path, header, content):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


def header(change):
    """A flaw of the header; `change` gets its entries in order and gives bytes to add."""

    def flaw(directory):
        path, entries, content = one_file(directory)
        entries.pop("__metadata__", None)
        in_order = sorted(entries.values(), key=lambda entry: entry["data_offsets"])
        put_together(path, entries, content + change(in_order))

    return flaw


def overlap(entries):
    same = next(e for e in entries[1:] if e["shape"] == entries[0]["shape"])
    same["data_offsets"] = entries[0]["data_offsets"]
    return b""


def hole(entries):
    entries[-1]["data_offsets"] = [n + 4 for n in entries[-1]["data_offsets"]]
    return bytes(4)


def negative(entries):
    entries[0]["shape"] = [-n for n in entries[0]["shape"]]
    return b""


def fractional(entries):
    entries[0]["shape"] = [float(n) for n in entries[0]["shape"]]
    return b""


def lying_dtype(directory):
    """Values of one half of a float under the name of the other."""

    def as_half(entries):
        for entry in entries:
            entry["dtype"] = "F16"
            entry["shape"][-1] *= 2
        return b""

    header(as_half)(directory)
    config(torch_dtype="bfloat16")(directory)


def doubled_key(directory):
    path, entries, content = one_file(directory)
    name = next(key for key in entries if key != "__metadata__")
    again = json.dumps({name: entries[name]})[1:]
    put_together(path, (json.dumps(entries)[:-1] + ", " + again).encode(), content)


def not_a_number(directory):
    path, entries, content = one_file(directory)
    put_together(path, entries, struct.pack("<f", float("nan")) + content[4:])


def header_bomb(directory):
    path, _, content = one_file(directory)
    put_together(path, b"[" * 10**5, content)


def index_outside(directory):
    one_file(directory)[0].rename(directory / "elsewhere.safetensors")
    index = {"weight_map": {"a": "../elsewhere.safetensors"}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))


FLAWS = {
    "overlap": ("llada", header(overlap), "overlap"),
    "hole": ("llada", header(hole), "leave a hole between them"),
    "a key twice": ("llada", doubled_key, "its header names '.*' twice"),
    "negative shape": ("llada", header(negative), "unreadable header"),
    "fractional shape": ("llada", header(fractional), "unreadable header"),
    "lying dtype": ("llada", lying_dtype, "torch_dtype is 'bfloat16', but .* F16"),
    "nan": ("llada", not_a_number, "holds NaN or infinity"),
    "outside": ("llada", index_outside, "not a weight index"),
    "bomb": ("llada", text_of("config.json", "[" * 10**5), "not valid JSON"),
    "header bomb": ("llada", header_bomb, "unreadable header"),
    "layers": ("llada", config(n_layers=10**9), r"n_layers is 1000000000, but .* \d+ tensors"),
    "experts": ("llada2", config(num_experts=10**9), "num_experts is 1000000000, but"),
    "width": ("llada", config(d_model=10**12), "d_model is 1000000000000, but no tensor"),
    "no number": ("llada", config(rope_theta=float("nan")), "rope_theta is nan"),
    "infinite": ("llada", config(rms_norm_eps=float("inf")), "rms_norm_eps is inf"),
    "defaults": (
        "llada",
        text_of("generation_config.json", '{"gen_length": 0}'),
        "gen_length is 0",
    ),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_flaws_are_named(tmp_path, flaw):
    kind, spoil, message = FLAWS[flaw]
    write_checkpoint(tmp_path, kind)
    spoil(tmp_path)
    with pytest.raises(InputError, match=message):
        models.load(tmp_path)


def test_a_size_that_no_machine_can_build_is_refused_without_weights_too():
    shape = json.loads((assets("tiny") / "config.json").read_text())
    with pytest.raises(InputError, match=r"n_layers is 1000000000; expected .* to 4096"):
        models.build({**shape, "n_layers": 10**9})


def test_an_empty_file_beside_shards_is_left_alone(tmp_path):
    write_checkpoint(tmp_path, "llada")
    save_file({}, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert models.load(tmp_path).embedding.isfinite().all()
