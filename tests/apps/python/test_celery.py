"""Owns: Celery with a worker of its own, broker and results on the server: tasks, retries, errors, chains, chords, times, a limit.
Does not own: the server."""

import os
import subprocess
import sys
import time
import unittest

import tasks
from celery import chain
from celery.exceptions import TaskRevokedError

JOBS = int(os.environ.get("APPS_JOBS", "500"))
WAIT_SECONDS = 240
HERE = os.path.dirname(os.path.abspath(__file__))


class Celery(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        command = ["-m", "celery", "-A", "tasks", "worker", "--pool", "threads", "--concurrency", "4", "--loglevel", "ERROR", "--without-mingle"]
        cls.worker = subprocess.Popen([sys.executable, *command], cwd=HERE, stderr=subprocess.STDOUT, stdout=subprocess.DEVNULL)
        # A worker that listens answers.
        assert tasks.add.delay(1, 1).get(WAIT_SECONDS) == 2

    @classmethod
    def tearDownClass(cls):
        cls.worker.terminate()
        assert cls.worker.wait(WAIT_SECONDS) == 0

    def test_many_tasks_each_once(self):
        results = [tasks.add.delay(at, 1) for at in range(JOBS)]
        self.assertEqual([one.get(WAIT_SECONDS) for one in results], [at + 1 for at in range(JOBS)])

    def test_retries_and_errors(self):
        self.assertEqual(tasks.third_time.delay().get(WAIT_SECONDS), 2)
        refused = tasks.refuses.delay()
        with self.assertRaisesRegex(ValueError, "no way"):
            refused.get(WAIT_SECONDS)
        self.assertEqual(refused.state, "FAILURE")

    def test_chain_and_chord(self):
        self.assertEqual(chain(tasks.add.s(1, 2), tasks.add.s(3), tasks.add.s(4))().get(WAIT_SECONDS), 10)
        self.assertEqual(tasks.squares(50).get(WAIT_SECONDS), sum(2 * at for at in range(50)))

    def test_a_task_with_a_time_does_not_run_before_it(self):
        begun = time.monotonic()
        late = tasks.add.apply_async((1, 2), countdown=1)
        self.assertFalse(late.ready())
        self.assertEqual(late.get(WAIT_SECONDS), 3)
        self.assertGreaterEqual(time.monotonic() - begun, 1)

    def test_a_rate_limit_is_kept_to(self):
        begun = time.monotonic()
        results = [tasks.limited.delay(at) for at in range(30)]
        self.assertEqual([one.get(WAIT_SECONDS) for one in results], list(range(30)))
        # A bucket of 20 a second holds one.
        self.assertGreaterEqual(time.monotonic() - begun, 1.3)

    def test_a_task_that_was_revoked_does_not_run(self):
        late = tasks.add.apply_async((1, 2), countdown=2)
        late.revoke()
        with self.assertRaises(TaskRevokedError):
            late.get(WAIT_SECONDS)


if __name__ == "__main__":
    unittest.main()
