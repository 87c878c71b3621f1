"""Owns: RQ with a worker of its own: jobs, failures and retries, times, dependencies. Does not own: the server."""

import os
import subprocess
import sys
import unittest
from datetime import timedelta

import tasks
from redis import Redis
from rq import Queue, Retry
from rq.job import Job
from rq.registry import FailedJobRegistry, FinishedJobRegistry

# A job is a process: a tenth of what others run.
JOBS = int(os.environ.get("APPS_JOBS", "500")) // 10
WAIT_SECONDS = 240
HERE = os.path.dirname(os.path.abspath(__file__))


class Rq(unittest.TestCase):
    def setUp(self):
        self.client = Redis.from_url(tasks.URL)
        self.client.flushall()
        self.queue = Queue("work", connection=self.client)

    def work(self, *flags):
        """A worker until nothing is left."""
        command = [sys.executable, "-m", "rq.cli", "worker", "--burst", "--quiet", "--url", tasks.URL, *flags, "work"]
        # Each job is a process, for which a busy machine takes its time.
        subprocess.run(command, cwd=HERE, check=True, timeout=WAIT_SECONDS + JOBS)

    def test_jobs_run_once_each(self):
        jobs = [self.queue.enqueue(tasks.double, at) for at in range(JOBS)]
        self.work()
        self.assertEqual(int(self.client.get("rq:done")), JOBS)
        self.assertEqual([job.return_value(refresh=True) for job in jobs], [2 * at for at in range(JOBS)])
        self.assertEqual(len(FinishedJobRegistry(queue=self.queue)), JOBS)
        self.assertEqual(len(self.queue), 0)

    def test_a_failed_job_is_tried_again_and_one_that_cannot_is_kept(self):
        good = self.queue.enqueue(tasks.fails_twice, retry=Retry(max=3))
        bad = self.queue.enqueue("tasks.nothing_of_this_name")
        self.work()
        self.assertEqual(good.return_value(refresh=True), "at last")
        registry = FailedJobRegistry(queue=self.queue)
        self.assertEqual(registry.get_job_ids(), [bad.id])
        registry.requeue(bad.id)
        self.assertEqual(Job.fetch(bad.id, connection=self.client).get_status(), "queued")

    def test_a_job_behind_another_and_one_at_a_time(self):
        first = self.queue.enqueue(tasks.double, 1)
        second = self.queue.enqueue(tasks.double, 2, depends_on=first)
        self.assertEqual(second.get_status(), "deferred")
        self.work()
        self.assertEqual(second.return_value(refresh=True), 4)
        late = self.queue.enqueue_in(timedelta(hours=1), tasks.double, 3)
        self.assertEqual(late.get_status(), "scheduled")
        self.work("--with-scheduler")
        self.assertEqual(late.get_status(refresh=True), "scheduled")


if __name__ == "__main__":
    unittest.main()
