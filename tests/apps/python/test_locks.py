"""Owns: redis-py's Lock, and its scripts and functions as an application calls them. Does not own: the server."""

import os
import threading
import unittest

from redis import Redis
from redis.exceptions import LockError, LockNotOwnedError, NoScriptError, ResponseError

PORT = int(os.environ["WEFT_PORT"])
HOLDERS = 8
ROUNDS = 25


class Locks(unittest.TestCase):
    def setUp(self):
        self.client = Redis(port=PORT)
        self.client.flushall()
        self.addCleanup(self.client.close)

    def test_one_holder_at_a_time(self):
        inside, most, done = [0], [0], [0]

        def hold():
            with Redis(port=PORT) as client:
                for _ in range(ROUNDS):
                    with client.lock("lock", timeout=60, sleep=0.001):
                        inside[0] += 1
                        most[0] = max(most[0], inside[0])
                        done[0] += 1
                        inside[0] -= 1

        threads = [threading.Thread(target=hold) for _ in range(HOLDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((most[0], done[0]), (1, HOLDERS * ROUNDS))

    def test_only_the_holder_extends_and_releases(self):
        lock = self.client.lock("lock", timeout=10)
        self.assertTrue(lock.acquire())
        other = self.client.lock("lock", timeout=10)
        self.assertFalse(other.acquire(blocking=False))
        self.assertTrue(lock.extend(20))
        self.assertGreater(self.client.pttl("lock"), 20_000)
        self.assertTrue(lock.extend(15, replace_ttl=True))
        self.assertLessEqual(self.client.pttl("lock"), 15_000)
        self.assertTrue(lock.reacquire())
        self.assertLessEqual(self.client.pttl("lock"), 10_000)
        self.client.set("lock", "somebody else's")
        with self.assertRaises(LockNotOwnedError):
            lock.extend(1)
        with self.assertRaises(LockNotOwnedError):
            lock.release()
        with self.assertRaises(LockError):
            other.release()

    def test_a_registered_script_comes_again_after_a_flush(self):
        script = self.client.register_script("return {KEYS[1], tonumber(ARGV[1]) + 1}")
        self.assertEqual(script(keys=["key"], args=[1]), [b"key", 2])
        self.client.script_flush()
        with self.assertRaises(NoScriptError):
            self.client.evalsha(script.sha, 0)
        self.assertEqual(script(keys=["key"], args=[2]), [b"key", 3])
        with self.client.pipeline() as pipeline:
            script(keys=["one"], args=[3], client=pipeline)
            pipeline.set("key", "value")
            self.assertEqual(pipeline.execute(), [[b"one", 4], True])

    def test_functions(self):
        code = """#!lua name=apps
        redis.register_function('grow', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)
        redis.register_function{function_name='look', callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}
        """
        self.assertEqual(self.client.function_load(code, replace=True), b"apps")
        self.assertEqual(self.client.fcall("grow", 1, "counter", 5), 5)
        self.assertEqual(self.client.fcall_ro("look", 1, "counter"), b"5")
        with self.assertRaises(ResponseError):
            self.client.fcall_ro("grow", 1, "counter", 5)
        dump = self.client.function_dump()
        self.client.function_delete("apps")
        self.client.function_restore(dump)
        self.assertEqual(self.client.fcall("grow", 1, "counter", 1), 6)
        self.client.function_flush()
        self.assertEqual(self.client.function_list(), [])


if __name__ == "__main__":
    unittest.main()
