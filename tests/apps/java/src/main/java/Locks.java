// Owns: Redisson as an application uses it, nearly all of which are scripts: locks, semaphores, latches, limits, maps whose
// entries expire, queues with delays, jobs. Does not own: the server.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RLock;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public final class Locks {
    private interface Check {
        void run(RedissonClient client) throws Exception;
    }

    private static final long WAIT_SECONDS = 240;

    public static void main(String[] arguments) throws Exception {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + System.getenv("WEFT_PORT")).setTimeout(60_000);
        RedissonClient client = Redisson.create(config);
        int failed = 0;
        failed += check("a lock has one holder, and is reentrant", client, Locks::lock);
        failed += check("a lock that is waited for is handed over by a message", client, Locks::handOver);
        failed += check("a fair lock is given in order; a read lock to many", client, Locks::fairAndShared);
        failed += check("a semaphore and a latch", client, Locks::semaphoreAndLatch);
        failed += check("a rate limiter", client, Locks::limiter);
        failed += check("a map whose entries expire", client, Locks::mapOfTimes);
        failed += check("a queue with delays", client, Locks::delays);
        client.shutdown();
        System.exit(failed == 0 ? 0 : 1);
    }

    private static int check(String name, RedissonClient client, Check check) {
        long begun = System.nanoTime();
        try {
            client.getKeys().flushall();
            check.run(client);
            System.out.printf("--- PASS: %s (%.1f s)%n", name, (System.nanoTime() - begun) / 1e9);
            return 0;
        } catch (Exception | AssertionError error) {
            error.printStackTrace(System.out);
            System.out.println("--- FAIL: " + name);
            return 1;
        }
    }

    private static void must(boolean is, String what) {
        if (!is) {
            throw new AssertionError(what);
        }
    }

    private static void beside(int threads, Callable<Void> work) throws Exception {
        List<Thread> all = new ArrayList<>();
        AtomicInteger failed = new AtomicInteger();
        for (int at = 0; at < threads; at++) {
            Thread thread = new Thread(() -> {
                try {
                    work.call();
                } catch (Exception | AssertionError error) {
                    error.printStackTrace(System.out);
                    failed.incrementAndGet();
                }
            });
            thread.start();
            all.add(thread);
        }
        for (Thread thread : all) {
            thread.join();
        }
        must(failed.get() == 0, failed + " threads failed");
    }

    private static void lock(RedissonClient client) throws Exception {
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger done = new AtomicInteger();
        beside(8, () -> {
            for (int round = 0; round < 25; round++) {
                RLock lock = client.getLock("lock");
                lock.lock();
                try {
                    must(inside.incrementAndGet() == 1, "two hold the lock");
                    lock.lock();
                    must(lock.getHoldCount() == 2, "it is held twice by its holder");
                    lock.unlock();
                    done.incrementAndGet();
                    inside.decrementAndGet();
                } finally {
                    lock.unlock();
                }
            }
            return null;
        });
        must(done.get() == 200, "each had it");
        must(!client.getLock("lock").isLocked(), "nobody holds it");
    }

    private static void handOver(RedissonClient client) throws Exception {
        RLock lock = client.getLock("lock");
        lock.lock(30, TimeUnit.SECONDS);
        must(lock.remainTimeToLive() > 20_000, "its time runs");
        CountDownLatch waits = new CountDownLatch(1);
        Thread other = new Thread(() -> {
            waits.countDown();
            client.getLock("lock").lock();
            client.getBucket("had").set("yes");
            client.getLock("lock").unlock();
        });
        other.start();
        must(waits.await(WAIT_SECONDS, TimeUnit.SECONDS), "the other begins");
        beside(1, () -> {
            must(!client.getLock("lock").tryLock(), "somebody else has it");
            return null;
        });
        lock.unlock();
        other.join();
        must("yes".equals(client.getBucket("had").get()), "the other had it");
    }

    private static void fairAndShared(RedissonClient client) throws Exception {
        AtomicInteger done = new AtomicInteger();
        beside(4, () -> {
            RLock lock = client.getFairLock("fair");
            for (int round = 0; round < 5; round++) {
                lock.lock();
                done.incrementAndGet();
                lock.unlock();
            }
            return null;
        });
        must(done.get() == 20, "each had it");
        var shared = client.getReadWriteLock("shared");
        CountDownLatch both = new CountDownLatch(2);
        beside(2, () -> {
            shared.readLock().lock();
            both.countDown();
            must(both.await(WAIT_SECONDS, TimeUnit.SECONDS), "two read at once");
            must(!shared.writeLock().tryLock(), "nobody writes meanwhile");
            shared.readLock().unlock();
            return null;
        });
        must(shared.writeLock().tryLock(), "nobody reads any more");
        shared.writeLock().unlock();
    }

    private static void semaphoreAndLatch(RedissonClient client) throws Exception {
        var semaphore = client.getSemaphore("semaphore");
        semaphore.trySetPermits(3);
        AtomicInteger inside = new AtomicInteger();
        beside(8, () -> {
            semaphore.acquire();
            must(inside.incrementAndGet() <= 3, "more than three");
            inside.decrementAndGet();
            semaphore.release();
            return null;
        });
        must(semaphore.availablePermits() == 3, "all are given back");
        var expiring = client.getPermitExpirableSemaphore("expiring");
        expiring.trySetPermits(1);
        String permit = expiring.acquire(60, TimeUnit.SECONDS);
        must(expiring.tryAcquire() == null, "there is one permit");
        expiring.release(permit);
        var latch = client.getCountDownLatch("latch");
        latch.trySetCount(4);
        beside(4, () -> {
            latch.countDown();
            must(latch.await(WAIT_SECONDS, TimeUnit.SECONDS), "all have come");
            return null;
        });
    }

    private static void limiter(RedissonClient client) throws Exception {
        var limiter = client.getRateLimiter("limiter");
        limiter.trySetRate(RateType.OVERALL, 10, java.time.Duration.ofMinutes(1));
        AtomicInteger granted = new AtomicInteger();
        beside(4, () -> {
            for (int at = 0; at < 10; at++) {
                if (limiter.tryAcquire()) {
                    granted.incrementAndGet();
                }
            }
            return null;
        });
        must(granted.get() == 10, granted + " of 10 were granted");
    }

    private static void mapOfTimes(RedissonClient client) throws Exception {
        var map = client.<String, String>getMapCache("map");
        map.put("kept", "one");
        map.put("short", "two", 50, TimeUnit.MILLISECONDS);
        must(map.putIfAbsent("kept", "three") == null == false, "it is there");
        must(map.fastPutIfAbsent("new", "four", 1, TimeUnit.MINUTES), "it was not");
        // The subject is the time itself.
        Thread.sleep(60);
        must(map.get("short") == null, "its time has passed");
        must("one".equals(map.get("kept")) && map.remainTimeToLive("new") > 50_000, "others are there");
        var scored = client.<String>getScoredSortedSet("scored");
        scored.add(1.5, "a");
        scored.addScore("a", 2);
        must(scored.getScore("a") == 3.5, "a score was added to");
    }

    private static void delays(RedissonClient client) throws Exception {
        RBlockingQueue<String> queue = client.getBlockingQueue("queue");
        var delayed = client.getDelayedQueue(queue);
        long begun = System.nanoTime();
        delayed.offer("late", 400, TimeUnit.MILLISECONDS);
        delayed.offer("soon", 100, TimeUnit.MILLISECONDS);
        must("soon".equals(queue.poll(WAIT_SECONDS, TimeUnit.SECONDS)), "soon comes first");
        must("late".equals(queue.poll(WAIT_SECONDS, TimeUnit.SECONDS)), "late comes then");
        must(System.nanoTime() - begun >= 400_000_000L, "and not before its time");
        delayed.destroy();
    }
}
