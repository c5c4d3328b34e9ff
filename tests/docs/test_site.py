"""The documentation: builds strictly, every page in the menu, every link leads somewhere."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from site_pages import BLOB, DOCS, ROOT, entries, refreshed, wanted

import xpredflow

PAGES = [*sorted(DOCS.rglob("*.md")), *(ROOT / f"{n}.md" for n in ("README", "CONTRIBUTING"))]
# What a fenced block may be: run by the tests (sh, python), taken from the source (py), or data.
LANGUAGES = {"sh", "python", "py", "json", "toml", "text"}
HERE = "https://github.com/xpredflow/xpredflow/"


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Language and text of every fenced block."""
    yield from re.findall(r"^ *```(\S*)\n(.*?)^ *```$", page.read_text(), re.M | re.S)


def links(page: Path) -> Iterator[str]:
    """Targets of links and pictures outside of code."""
    text = re.sub(r"^ *```.*?^ *```$|`[^`\n]+`", "", page.read_text(), flags=re.M | re.S)
    yield from re.findall(r"\]\(([^)\s]+)\)", text)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Zensical checks links between pages, their anchors and what the API page names."""
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("samples"))
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text())
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", "mkdocs.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    page = (tmp_path / "site/api.html").read_text()
    missing = [name for name in xpredflow.__all__ if f'.{name}"' not in page]
    assert not missing


def test_every_page_is_in_the_menu_once() -> None:
    listed = [page for _, _, page in entries()]
    there = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    tables = {page for page in there if page.startswith("results/")}
    assert sorted(listed) == sorted({*there} - tables | {"results/README.md"})


def test_what_comes_from_the_source_is_up_to_date() -> None:
    for file, text in wanted().items():
        if file.suffix == ".md":  # a summary in llms.txt may lag behind its page
            assert file.read_text() == text, f"{file}: run make docs"
    assert DOCS / "method.md" in wanted()


def test_lines_that_are_gone_are_not_shown() -> None:
    page = "<!-- source: flow.py | no such line -->\n\n```py\n```\n"
    with pytest.raises(SystemExit, match="0 lines begin with 'no such line'"):
        refreshed(page)
    shown = refreshed("<!-- source: flow.py | x_next = torch.lerp -->\n\n```py\nold\n```\nafter\n")
    assert "x_next = torch.lerp(x, x_pred" in shown
    assert "old" not in shown
    assert shown.endswith("```\nafter\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        path, _, _ = target.partition("#")
        if path.startswith(HERE):
            path = re.sub(r"^(blob|tree|raw)/main/", "", path.removeprefix(HERE))
            assert (ROOT / path).exists(), target
        elif path and not path.startswith(("http:", "https:")):
            assert (page.parent / path).exists(), target
            assert (page.parent / path).resolve().is_relative_to(DOCS.resolve()), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_what_it_is(page: Path) -> None:
    for language, text in blocks(page):
        assert language in LANGUAGES, f"{page}: ```{language} in front of {text[:60]!r}"
        if language == "text":
            assert "xpredflow " not in text, f"{page}: a command belongs into a sh block"


def test_every_name_of_the_package_is_in_the_reference() -> None:
    named = re.findall(r"^::: xpredflow\.(\S+)$", (DOCS / "api.md").read_text(), re.M)
    assert {name.rpartition(".")[2] for name in named} == set(xpredflow.__all__)
    for name in named:
        module, _, short = name.rpartition(".")
        found = getattr(xpredflow, short)
        assert getattr(found, "__module__", module) in (f"xpredflow.{module}", module)


def test_language_models_find_every_page() -> None:
    text = (DOCS / "llms.txt").read_text()
    assert text.startswith("# xpredflow\n\n> ")
    for _, title, page in entries():
        assert f"- [{title}]({BLOB}/docs/{page}): " in text
