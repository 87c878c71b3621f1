// Owns: Jedis and Lettuce through a gateway in front of a cluster, each as a client that knows clusters and as one that does not. Does
// not own: the gateway, whose port is in WEFT_PORT.

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.sync.RedisClusterCommands;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.UnifiedJedis;

public final class Gateway {
    private static final int WAIT_MS = 240_000;
    private static final int KEYS = 200;
    private static final String SCRIPT = "return redis.call('INCRBY', KEYS[1], 2)";

    public static void main(String[] arguments) {
        int port = Integer.parseInt(System.getenv("WEFT_PORT"));
        HostAndPort address = new HostAndPort("127.0.0.1", port);
        DefaultJedisClientConfig config = DefaultJedisClientConfig.builder().timeoutMillis(WAIT_MS).build();
        try (JedisPooled plain = new JedisPooled(address, config); JedisCluster cluster = new JedisCluster(Set.of(address), config, 1)) {
            jedis("jedis", plain);
            jedis("jedis-cluster", cluster);
        }
        RedisURI uri = RedisURI.builder().withHost("127.0.0.1").withPort(port).withTimeout(Duration.ofMillis(WAIT_MS)).build();
        RedisClient plain = RedisClient.create(uri);
        RedisClusterClient cluster = RedisClusterClient.create(uri);
        try (var connection = plain.connect(); var clustered = cluster.connect()) {
            lettuce("lettuce", connection.sync());
            connection.sync().multi();
            connection.sync().incr("lettuce:n");
            must(connection.sync().exec().size() == 1, "EXEC of lettuce");
            lettuce("lettuce-cluster", clustered.sync());
        }
        plain.shutdown();
        cluster.shutdown();
        System.out.println("--- PASS: Jedis and Lettuce");
    }

    private static void jedis(String name, UnifiedJedis client) {
        for (int at = 0; at < KEYS; at++) {
            client.set(name + at, Integer.toString(at));
        }
        for (int at = 0; at < KEYS; at++) {
            must(client.get(name + at).equals(Integer.toString(at)), name + at);
        }
        must(client.eval(SCRIPT, List.of(name + "0"), List.of()).equals(2L), name + ": a script");
        client.rpush(name + "list", "x");
        must(client.blpop(WAIT_MS / 1000, name + "list").equals(List.of(name + "list", "x")), name + ": BLPOP");
        try (var pipeline = client.pipelined()) {
            var last = pipeline.incr(name + "n");
            for (int at = 1; at < KEYS; at++) {
                last = pipeline.incr(name + "n");
            }
            pipeline.sync();
            must(last.get() == KEYS, name + ": a pipeline");
        }
    }

    private static void lettuce(String name, RedisClusterCommands<String, String> client) {
        List<String> keys = new ArrayList<>();
        for (int at = 0; at < KEYS; at++) {
            client.set(name + at, Integer.toString(at));
            keys.add(name + at);
        }
        must(client.mget(keys.toArray(new String[0])).size() == KEYS, name + ": MGET");
        must(client.<Long>eval(SCRIPT, ScriptOutputType.INTEGER, name + "0") == 2, name + ": a script");
        must(client.hset(name + "h", "f", "v") && client.hgetall(name + "h").get("f").equals("v"), name + ": a hash");
        must(client.del(keys.toArray(new String[0])) == KEYS, name + ": DEL");
    }

    private static void must(boolean is, String what) {
        if (!is) {
            throw new AssertionError(what);
        }
    }
}
