"""Owns: the Celery application and its tasks, and the functions that RQ runs. Does not own: what is checked."""

import os

from celery import Celery, chord, group
from redis import Redis

URL = f"redis://127.0.0.1:{os.environ['WEFT_PORT']}"

app = Celery("apps", broker=f"{URL}/1", backend=f"{URL}/2")
app.conf.update(
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    worker_prefetch_multiplier=4,
    result_chord_join_timeout=120,
)


@app.task
def add(one, two):
    return one + two


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=5)
def third_time(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    return self.request.retries


@app.task
def refuses():
    raise ValueError("no way")


@app.task(bind=True, rate_limit="20/s")
def limited(self, at):
    return at


def squares(count):
    """A chord: a task of all results behind those that give them."""
    return chord(group(add.s(at, at) for at in range(count)))(total.s())


def double(value):
    """What RQ runs."""
    Redis.from_url(URL).incr("rq:done")
    return value * 2


def fails_twice():
    if Redis.from_url(URL).incr("rq:tries") < 3:
        raise ValueError("not yet")
    return "at last"
