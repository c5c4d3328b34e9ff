"""Pictures are drawn anew from the figures beside them, also from reports of earlier versions."""

import shutil
from pathlib import Path

import pytest
from redraw_pictures import RESULTS, main

pytest.importorskip("matplotlib")


def test_every_kind_of_report_has_a_picture(tmp_path: Path, capsys) -> None:
    for name in ("anchor", "headline/chosen", "decoders-32/compare"):  # the last says no rules
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(RESULTS / f"{name}.json", tmp_path / f"{name}.json")
    main(tmp_path)
    for line in capsys.readouterr().out.splitlines():
        assert Path(line).read_bytes()[:4] == b"\x89PNG"
    assert len(list(tmp_path.rglob("*.png"))) == 3
