"""Where the decoders of a comparison disagree: each such problem as a page, side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from xpredflow.errors import InputError
from xpredflow.experiments.bench import Bench, Source, Trial
from xpredflow.experiments.parallelism import Point
from xpredflow.files import make_directory
from xpredflow.tasks import prompt_of
from xpredflow.tasks.base import Task, Verdict
from xpredflow.watch.index_page import Entry, write_index
from xpredflow.watch.trace import Trace, record
from xpredflow.watch.viewer import MOST_COLUMNS, write_page

PER_TASK = 20  # pages; how many more there are is said


@dataclass(frozen=True)
class Difference:
    """A problem that some of the decoders solve and others do not."""

    task: Task
    number: int
    chosen: Sequence[Point]


def pages_directory(path: str | Path) -> Path:
    """Where pages are to be written, or an error before anything is measured."""
    path = Path(path).expanduser()
    if path.exists() and not path.is_dir():
        raise InputError(f"--traces {str(path)!r} is a file: name a directory")
    return path


def write_disagreements(
    bench: Bench, source: Source, points: Sequence[Point], out: str | Path
) -> Path:
    """Decode what the decoders disagree on once more, and write OUT/index.html with its pages."""
    out = pages_directory(out)
    make_directory(out)
    entries, notes = [], []
    for task in bench.plan.tasks:
        chosen = best_settings([point for point in points if point.task == task.name])
        found = [Difference(task, number, chosen) for number in disagreements(chosen)]
        notes.append(_note(task, bench, chosen, len(found)))
        entries += _pages(bench, source, found[:PER_TASK], out)
    return write_index(out / "index.html", "Where the decoders disagree", notes, entries)


def best_settings(points: Sequence[Point]) -> list[Point]:
    """Each decoder at its most accurate, fewer passes first; of many decoders the best four."""
    best: dict[str, Point] = {}
    for point in points:
        known = best.get(point.decoder)
        if known is None or _order(point) < _order(known):
            best[point.decoder] = point
    kept = sorted(best.values(), key=_order)[:MOST_COLUMNS]
    return [point for point in best.values() if point in kept]


def _order(point: Point) -> tuple[float, float]:
    return -point.summary.accuracy, point.share


def disagreements(points: Sequence[Point]) -> list[int]:
    """Numbers of the problems on which the verdicts differ."""
    by_number: dict[int, set[bool]] = {}
    for point in points:
        for sample in point.found.samples:
            by_number.setdefault(sample.number, set()).add(sample.passed)
    return sorted(number for number, verdicts in by_number.items() if len(verdicts) > 1)


def _note(task: Task, bench: Bench, chosen: Sequence[Point], count: int) -> str:
    shown = min(count, PER_TASK)
    rest = f"; the first {shown} are shown" if count > shown else ""
    return (
        f"{task.name}: the verdicts differ on {count} of {bench.plan.problems(task)} problems of"
        f" the {bench.plan.split} split{rest}. Each decoder at its most accurate setting:"
        f" {'; '.join(map(_title, chosen))}."
    )


def _title(point: Point) -> str:
    setting = f" at {point.setting}" if point.setting else ""
    return f"{point.decoder}{setting}, budget {point.found.budget}"


def _pages(bench: Bench, source: Source, found: Sequence[Difference], out: Path) -> Iterator[Entry]:
    if not found:
        return
    numbers = [one.number for one in found]
    task, chosen = found[0].task, found[0].chosen
    traces = [_recorded(bench, source, task, point, numbers) for point in chosen]
    for number in numbers:
        own = [trace.only(number) for trace in traces]
        name = f"{task.name} {number}"
        file = out / f"{name.replace(' ', '-').replace('/', '-')}.html"
        write_page(file, own, name)
        yield Entry(file.name, name, [one for trace in own for one in trace.recordings()])


def _recorded(
    bench: Bench, source: Source, task: Task, point: Point, numbers: Sequence[int]
) -> Trace:
    """The same rows again, with every pass kept; a verdict is of the same text or not told."""
    model, trial = bench.model(source), point.trial or Trial(point.decoder)
    options = {"gen_length": task.response_length, **bench.plan.options_of(trial)}
    prompts = {n: prompt_of(task.problem(bench.plan.split, n)) for n in numbers}
    trace = record(model, prompts, decoder=trial.decoder, title=point.decoder, **options)
    samples = {sample.number: sample for sample in point.found.samples}
    verdicts = {
        done.row: Verdict(samples[done.row].passed, samples[done.row].reason)
        for done in trace.decoded
        if samples[done.row].answer == done.text
    }
    return trace.judged(verdicts)
