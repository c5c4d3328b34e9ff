"""Saving and building: round trips, shards, what others can read, and reproducible weights."""

import json
import os

import pytest
import torch
from builders import CONFIGS, write_checkpoint, write_tokenizer
from safetensors import safe_open

import xpredflow.models as models
from xpredflow.errors import InputError
from xpredflow.models import FAMILIES, MaskedDiffusionModel


def some_logits(model):
    columns = torch.arange(12).expand(2, -1)
    inputs = torch.randn(2, 12, 32, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        return model.logits(inputs, columns, columns)


@pytest.mark.parametrize("limit", [10**9, 20_000])
def test_round_trip(tmp_path, family, limit):
    raw = write_checkpoint(tmp_path / "a", family)
    write_tokenizer(tmp_path / "a", family)
    first = models.load(tmp_path / "a")
    models.save(first, tmp_path / "b", max_shard_bytes=limit)
    second = models.load(tmp_path / "b")
    assert torch.equal(some_logits(first), some_logits(second))
    assert second.special == first.special
    assert second.tokenizer.chat_template == first.tokenizer.chat_template
    files = sorted((tmp_path / "b").glob("*.safetensors"))
    assert (len(files) > 1) == (limit == 20_000)
    stored = {}
    for file in files:
        with safe_open(file, framework="pt") as reader:
            assert reader.metadata() == {"format": "pt"}
            stored |= {key: reader.get_tensor(key) for key in reader.keys()}  # noqa: SIM118
    assert stored.keys() == raw.keys()
    assert all(torch.equal(stored[key], raw[key]) for key in raw)
    if len(files) > 1:
        index = json.loads((tmp_path / "b" / "model.safetensors.index.json").read_text())
        assert index["weight_map"].keys() == raw.keys()
        assert index["metadata"]["total_size"] == sum(t.nbytes for t in raw.values())


def test_the_config_is_kept_and_the_dtype_updated(tmp_path, family):
    write_checkpoint(tmp_path / "a", family, unknown_field={"kept": [1]})
    models.save(models.load(tmp_path / "a", dtype="float16"), tmp_path / "b")
    before = json.loads((tmp_path / "a" / "config.json").read_text())
    after = json.loads((tmp_path / "b" / "config.json").read_text())
    assert after == {**before, "torch_dtype": "float16"}


def test_saving_over_an_earlier_save_leaves_nothing_stale(tmp_path, family):
    old, new = models.build(CONFIGS[family], 1), models.build(CONFIGS[family], 2)
    models.save(old, tmp_path, max_shard_bytes=20_000)
    models.save(new, tmp_path)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    assert torch.equal(some_logits(models.load(tmp_path)), some_logits(new))
    models.save(old, tmp_path, max_shard_bytes=20_000)
    assert torch.equal(some_logits(models.load(tmp_path)), some_logits(old))


@pytest.mark.parametrize("exchanges", [True, False])
def test_what_was_said_of_the_earlier_weights_goes_with_them(tmp_path, monkeypatch, exchanges):
    if not exchanges:
        monkeypatch.setattr("xpredflow.models.publication._exchange", lambda *_: False)
    model = models.build(CONFIGS["llada"], 1)
    models.save(model, tmp_path, beside={"alignment.json": "{}", "softmask.json": "{}"})
    (tmp_path / "generation_config.json").write_text('{"alignment": {}}')
    (tmp_path / "notes.txt").write_text("mine")
    models.save(model, tmp_path)
    left = ["config.json", "model.safetensors", "notes.txt"]
    assert sorted(f.name for f in tmp_path.iterdir()) == left
    assert not models.load(tmp_path).defaults.aligned


def test_a_failed_save_leaves_the_earlier_one(tmp_path, monkeypatch):
    old = models.build(CONFIGS["llada"], 1)
    models.save(old, tmp_path)

    def full(*args, **kwargs):
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    kept = rf"cannot write '{tmp_path}': No space left.*make room.*stood there is unchanged"
    with pytest.raises(InputError, match=kept):
        models.save(models.build(CONFIGS["llada"], 2), tmp_path)
    assert torch.equal(some_logits(models.load(tmp_path)), some_logits(old))
    assert len(list(tmp_path.iterdir())) == 2


def test_weights_have_the_rights_of_any_other_file(tmp_path):
    models.save(models.build(CONFIGS["llada"], 1), tmp_path)
    (tmp_path / "plain").touch()
    rights = {file.name: file.stat().st_mode for file in tmp_path.iterdir()}
    assert rights["model.safetensors"] == rights["plain"]


def test_the_same_seed_gives_the_same_weights(family):
    a, b, c = (models.build(CONFIGS[family], seed) for seed in (1, 1, 2))
    assert torch.equal(some_logits(a), some_logits(b))
    assert not torch.equal(some_logits(a), some_logits(c))
    half = models.build(CONFIGS[family], 1, dtype="bfloat16")
    assert torch.equal(half.embedding, a.embedding.bfloat16())


def test_the_start_is_sensible(family):
    model = models.build(CONFIGS[family], 0)
    for name, tensor in model.state_dict().items():
        if tensor.ndim == 1:
            assert torch.all(tensor == (0 if name.endswith("bias") else 1)), name
        else:
            damped = any(part in name for part in ("attn_out", "dense", "down_proj")) or (
                "blocks" in name and "ff_out" in name
            )
            std = 0.02 / (2 * model.shape.layers) ** 0.5 if damped else 0.02
            assert tensor.std().item() == pytest.approx(std, rel=0.15), name


def test_one_more_family_is_one_more_class():
    @FAMILIES.register("ToyModelLM")
    class Toy(MaskedDiffusionModel):
        model_type = "toy"

    try:
        assert FAMILIES["ToyModelLM"] is Toy
    finally:
        FAMILIES.remove("ToyModelLM")


def test_what_killed_saves_left_behind_is_removed(model, tmp_path):
    alive = tmp_path / f".saving-{os.getpid()}-abc"
    for left in (tmp_path / ".saving-old", tmp_path / ".saving-999999999-xyz", alive):
        left.mkdir()
        (left / "model.safetensors").write_bytes(b"half")
    models.save(model, tmp_path)
    assert [path.name for path in tmp_path.glob(".saving-*")] == [alive.name]


def test_weights_that_are_not_finite_leave_the_old_checkpoint(checkpoint, tmp_path):
    model = models.load(checkpoint[0])
    models.save(model, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with torch.no_grad():
        model.embedding[0, 0] = torch.nan
    with pytest.raises(InputError, match="holds NaN or infinity"):
        models.save(model, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_tokenizer_of_another_model_is_found_when_it_is_loaded(tmp_path):
    write_checkpoint(tmp_path, "llada", tokenizer=True)
    file = tmp_path / "tokenizer.json"
    content = json.loads(file.read_text())
    content["model"]["vocab"]["zzz"] = 400
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"'zzz' with id 400, but the embedding has 288 rows"):
        models.load(tmp_path)


def test_a_checkpoint_is_published_at_one_stroke(tmp_path, monkeypatch):
    place = tmp_path / "model"
    old, new = models.build(CONFIGS["llada"], 1), models.build(CONFIGS["llada"], 2)
    models.save(old, place, max_shard_bytes=20_000, beside={"softmask.json": "{}"})
    (place / "README.md").write_text("mine")
    before = {path.name: path.read_bytes() for path in place.iterdir()}

    def killed(*_):
        assert {path.name: path.read_bytes() for path in place.iterdir()} == before
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("xpredflow.models.publication._exchange", killed)
        with pytest.raises(KeyboardInterrupt):
            models.save(new, place)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    models.save(new, place)
    names = {"config.json", "model.safetensors", "README.md"}  # the other weights' mask is gone
    assert {path.name for path in place.iterdir()} == names
    assert (place / "README.md").read_text() == "mine"
    assert torch.equal(some_logits(models.load(place)), some_logits(new))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_directories_in_the_place_of_a_checkpoint_stay(tmp_path, monkeypatch):
    place = tmp_path / "model"
    (place / "mine").mkdir(parents=True)
    models.save(models.build(CONFIGS["llada"], 1), place, max_shard_bytes=20_000)
    models.save(models.build(CONFIGS["llada"], 2), place)
    names = ["config.json", "mine", "model.safetensors"]
    assert sorted(path.name for path in place.iterdir()) == names
    monkeypatch.setattr("xpredflow.models.publication._exchange", lambda *_: False)
    (place / "mine").rmdir()
    (place / "README.md").write_text("mine")
    models.save(models.build(CONFIGS["llada"], 3), place, max_shard_bytes=20_000)
    assert (place / "README.md").read_text() == "mine"
    assert not (place / "model.safetensors").exists()
    assert models.load(place).eval()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
