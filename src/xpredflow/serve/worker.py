"""The thread that owns the model: it alone steps the session, everything else is told by queue.

Rows join and leave between passes. A pass that raises takes down no row but the one that is to
blame: the rows in flight are decoded anew, each by itself. Since an answer depends on its request
alone they say the same again, and whoever reads one sees it go on.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from jinja2 import TemplateError

from xpredflow.engine.engine import Engine
from xpredflow.engine.session import Session
from xpredflow.engine.steps import Step
from xpredflow.errors import InputError
from xpredflow.models.team import OutOfStep
from xpredflow.serve.config import ServeConfig
from xpredflow.serve.feed import Mailbox
from xpredflow.serve.jobs import Job, RowFailed
from xpredflow.serve.tracks import Bounds, Track

_log = logging.getLogger("xpredflow.serve")
NO_BOUNDS = Bounds()
OnPass = Callable[[int, int], None]  # rows in the pass, rows that wait


def bounds_of(config: ServeConfig) -> Bounds:
    """What a server's settings say of the length of a row."""
    return Bounds(config.max_prompt_length, config.max_gen_length)


class ModelThread:
    """A backend in this process."""

    def __init__(
        self,
        engine: Engine,
        *,
        max_batch: int = 8,
        bounds: Bounds = NO_BOUNDS,
        on_pass: OnPass | None = None,
    ) -> None:
        self.name = engine.model.name
        self._engine, self._max_batch, self._bounds = engine, max_batch, bounds
        self._on_pass = on_pass or (lambda running, waiting: None)
        self._inbox: SimpleQueue[tuple[Mailbox, Job | None] | None] = SimpleQueue()
        self._lanes = [_Lane(self._session())]  # the batch, then rows that are decoded alone
        self._failure: BaseException | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    def open(self, job: Job) -> Mailbox:
        """Hand a job in; its mailbox hears of it."""
        self.check()
        mailbox = Mailbox(on_close=lambda box: self._inbox.put((box, None)))
        self._inbox.put((mailbox, job))
        return mailbox

    def check(self) -> None:
        if self._failure is not None or not self._thread.is_alive():
            raise RowFailed(f"the model's thread has ended: {self._failure!r}")

    def stop(self) -> None:
        self._inbox.put(None)
        self._thread.join()

    def _session(self) -> Session:
        return self._engine.session(max_batch=self._max_batch)

    def _run(self) -> None:
        try:
            while not self._stopped:
                self._listen()
                for lane in list(self._lanes):
                    self._advance(lane)
                self._lanes[1:] = [lane for lane in self._lanes[1:] if lane.tracks]
        except BaseException as error:
            self._failure = error
            _log.exception("the model's thread has ended")
        finally:
            for lane in self._lanes:
                for track in lane.tracks.values():
                    track.mailbox.put(RowFailed("the server has stopped"))
            while not self._inbox.empty():
                if (news := self._inbox.get()) is not None:
                    news[0].put(RowFailed("the server has stopped"))

    def _listen(self) -> None:
        """Take what has come in; without rows in flight, wait for it."""
        idle = not any(lane.tracks for lane in self._lanes)
        while idle or not self._inbox.empty():
            news, idle = self._inbox.get(), False
            if news is None:
                self._stopped = True
                return
            mailbox, job = news
            if job is not None:
                self._accept(self._lanes[0], job, mailbox)
                continue
            for lane in self._lanes:
                lane.drop(mailbox)

    def _accept(self, lane: "_Lane", job: Job, mailbox: Mailbox) -> None:
        if mailbox.closed:
            return
        try:
            track = Track(lane.session, job, mailbox, self._bounds)
        except (InputError, TemplateError) as error:
            mailbox.put(InputError(str(error)))
        except Exception as error:
            _log.exception("a row could not be accepted")
            mailbox.put(RowFailed(f"{type(error).__name__} when the row was prepared"))
        else:
            lane.tracks[track.ticket] = track

    def _advance(self, lane: "_Lane") -> None:
        """One pass; if it raises, every row of the lane begins anew in a lane of its own."""
        if not lane.tracks:
            return
        try:
            step = lane.session.step()
        except OutOfStep:  # no later pass can succeed
            raise
        except Exception as error:
            _log.exception("a pass failed with %d rows", len(lane.tracks))
            self._separate(lane, error)
            return
        if step is not None:
            self._on_pass(len(step.rows), lane.session.waiting)
            lane.report(step)

    def _separate(self, lane: "_Lane", error: Exception) -> None:
        tracks, lane.tracks, lane.session = list(lane.tracks.values()), {}, self._session()
        if len(tracks) == 1:
            tracks[0].mailbox.put(RowFailed(f"{type(error).__name__} while the row was decoded"))
            return
        for track in tracks:
            alone = _Lane(self._session())
            self._accept(alone, track.job, track.mailbox)
            self._lanes.append(alone)


class _Lane:
    """A session and the rows it decodes for someone."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.tracks: dict[int, Track] = {}

    def drop(self, mailbox: Mailbox) -> None:
        """Give up the row that a mailbox heard of."""
        for ticket, track in list(self.tracks.items()):
            if track.mailbox is mailbox:
                self.session.cancel(ticket)
                del self.tracks[ticket]

    def report(self, step: Step) -> None:
        """Tell every row of a Step what became of it; a row that cannot be told fails alone."""
        ended = {done.row: done for done in step.finished}
        for i, ticket in enumerate(step.rows):
            track = self.tracks.get(ticket)
            if track is None:
                continue
            try:
                track.follow(step, i, ended=ticket in ended)
            except Exception as error:
                _log.exception("a row's text could not be made")
                track.mailbox.put(RowFailed(f"{type(error).__name__} while the text was made"))
                self.drop(track.mailbox)
        for ticket, done in ended.items():
            track = self.tracks.pop(ticket, None)
            if track is not None:
                track.finish(done)
