"""Owns: redis-py against the server: connect, pool, pipeline, transaction, publish and subscribe, blocking. Does not own:
what commands answer in detail, which the differential tests compare."""

import threading
import unittest

import redis
from server import REPLY_SECONDS, Server


class RedisPy(unittest.TestCase):
    protocol = 2

    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def setUp(self):
        # redis-py gives up after five seconds and tries again, which counts twice: not what is tested.
        patience = {"socket_timeout": 2 * REPLY_SECONDS, "socket_connect_timeout": REPLY_SECONDS}
        self.client = redis.Redis(port=self.server.port, protocol=self.protocol, decode_responses=True, **patience)
        self.addCleanup(self.client.close)
        self.client.flushall()

    def test_values_of_every_type(self):
        client = self.client
        self.assertTrue(client.set("s", "v", ex=100))
        self.assertEqual(client.get("s"), "v")
        self.assertTrue(0 < client.ttl("s") <= 100)
        self.assertEqual(client.hset("h", mapping={"a": "1", "b": "2"}), 2)
        self.assertEqual(client.hgetall("h"), {"a": "1", "b": "2"})
        self.assertEqual(client.rpush("l", "a", "b", "c"), 3)
        self.assertEqual(client.lrange("l", 0, -1), ["a", "b", "c"])
        self.assertEqual(client.sadd("set", "x", "y"), 2)
        self.assertEqual(client.smembers("set"), {"x", "y"})
        self.assertEqual(client.zadd("z", {"one": 1, "two": 2.5}), 2)
        scored = [tuple(pair) for pair in client.zrange("z", 0, -1, withscores=True)]
        self.assertEqual(scored, [("one", 1.0), ("two", 2.5)])
        entry = client.xadd("stream", {"field": "value"})
        self.assertEqual(client.xrange("stream"), [(entry, {"field": "value"})])
        self.assertEqual(sorted(client.scan_iter(count=2)), ["h", "l", "s", "set", "stream", "z"])

    def test_a_pool_of_many_threads(self):
        def work():
            for _ in range(200):
                self.client.incr("n")

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.client.get("n"), "1600")

    def test_pipelines_and_transactions(self):
        pipeline = self.client.pipeline(transaction=False)
        for number in range(1000):
            pipeline.set(f"k{number}", number)
        pipeline.get("k999")
        self.assertEqual(pipeline.execute()[-1], "999")
        with self.client.pipeline() as pipeline:
            pipeline.watch("k1")
            value = int(pipeline.get("k1"))
            pipeline.multi()
            pipeline.set("k1", value + 1)
            self.client.set("k1", "changed")
            with self.assertRaises(redis.WatchError):
                pipeline.execute()
        self.assertEqual(self.client.get("k1"), "changed")

    def test_publish_and_subscribe(self):
        pubsub = self.client.pubsub()
        pubsub.subscribe("news")
        pubsub.psubscribe("n*")
        kinds = [pubsub.get_message(timeout=REPLY_SECONDS)["type"] for _ in range(2)]
        self.assertEqual(kinds, ["subscribe", "psubscribe"])
        self.assertEqual(self.client.publish("news", "hello"), 2)
        got = [pubsub.get_message(timeout=REPLY_SECONDS) for _ in range(2)]
        self.assertEqual([message["type"] for message in got], ["message", "pmessage"])
        self.assertEqual({message["data"] for message in got}, {"hello"})
        pubsub.close()

    def test_blocking(self):
        got = []
        thread = threading.Thread(target=lambda: got.append(self.client.blpop(["a", "b"], timeout=REPLY_SECONDS)))
        thread.start()
        while not any(other["cmd"] == "blpop" for other in self.client.client_list()):
            pass
        self.client.rpush("b", "x")
        thread.join()
        self.assertEqual([list(pair) for pair in got], [["b", "x"]])
        self.assertIsNone(self.client.blpop("a", timeout=0.05))

    def test_what_tools_ask(self):
        self.assertEqual(self.client.info()["redis_version"], "7.4.0")
        self.assertIn("maxmemory", self.client.config_get("maxmemory*"))
        self.assertGreater(self.client.command_count(), 200)
        self.assertEqual(self.client.client_getname(), None)
        with self.assertRaises(redis.ResponseError):
            self.client.execute_command("NOSUCH")


class RedisPy3(RedisPy):
    protocol = 3


if __name__ == "__main__":
    unittest.main()
