"""The README's example runs as it is printed, and its table names every decoder."""

import re
from pathlib import Path

from xpredflow.decoders import DECODERS, POLICIES

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_example_runs(capsys) -> None:
    [example] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_every_decoder_and_policy_is_listed() -> None:
    section = README.split("## Decoders")[1].split("## Models")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE) == list(DECODERS)
    for policy in (*POLICIES, "learned"):
        assert re.search(rf"`{policy}\b", README), policy
