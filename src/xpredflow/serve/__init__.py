"""An OpenAI-compatible HTTP server whose answers equal the offline decode (docs/serve.md).

A request becomes jobs, one per row (jobs.py); a backend decodes them (worker.py: the thread that
owns the model; replicas.py: several machines) and every row reports through a feed (feed.py); what
a feed says becomes a response (answers.py) or a stream of events (events.py). app.py joins these.
"""
