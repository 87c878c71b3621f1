//! Owns: one line on each directive that acts, for `weft serve --help` and `docs/configuration.md`.

/// Directives that act, in groups, with what each does.
pub const ABOUT: &[(&str, &[(&str, &str)])] = &[
    (
        "Where the server listens",
        &[
            ("port", "TCP port for RESP2, RESP3, RESPB and HTTP; 0 for none"),
            (
                "bind",
                "addresses; `*` is all of IPv4, `::*` all of IPv6, `-` before one allows that it is missing",
            ),
            ("unixsocket", "path of a Unix socket"),
            ("unixsocketperm", "its permissions, in octal"),
            ("tcp-backlog", "connections that may wait to be accepted"),
            ("protected-mode", "without a password, serve clients of this machine only"),
            ("threads", "workers; 0 is one for each core"),
            (
                "threads-always-active",
                "a thread for each worker at any time, and not one for several while that is enough",
            ),
        ],
    ),
    (
        "Scripts",
        &[
            (
                "busy-reply-threshold",
                "milliseconds after which others are told that a script runs; 0 for never",
            ),
            ("script-memory-limit", "memory of all scripts and functions together"),
            ("script-kill-undo", "a script that has written can be killed, and what it wrote is taken back"),
        ],
    ),
    (
        "Clients",
        &[
            ("maxclients", "connections at once"),
            ("timeout", "seconds after which an idle client is closed; 0 for never"),
            (
                "auth-timeout",
                "seconds in which a client must authenticate where that is required; 0 for no limit",
            ),
            ("tcp-keepalive", "seconds between probes of idle connections; 0 for off"),
            (
                "client-query-buffer-limit",
                "bytes of a client that are received and have not run; the same for what MULTI has queued",
            ),
            (
                "client-output-buffer-limit",
                "bytes that a client may leave unread: class, hard limit, soft limit, seconds over the soft one",
            ),
            ("tracking-table-max-keys", "keys that CLIENT TRACKING remembers; 0 for no limit"),
        ],
    ),
    (
        "RESPB",
        &[
            (
                "respb-detect",
                "a connection may begin with a RESPB frame; without it by `HELLO 3 PROTO respb` only",
            ),
            ("respb-channels", "channels of a connection"),
            ("respb-unauthenticated-channels", "channels of a connection before authentication"),
            ("respb-queue-bytes", "what waits behind a blocked request, for each channel"),
            ("respb-output-bytes", "replies and pushes that are not yet sent, for each channel"),
            (
                "respb-connection-queue-bytes",
                "what waits behind blocked requests, for all channels of a connection; the same for what MULTI has queued",
            ),
            (
                "respb-connection-output-bytes",
                "replies and pushes that wait to be sent, for all channels of a connection",
            ),
            ("respb-frame-bytes", "one frame of a client"),
        ],
    ),
    (
        "HTTP",
        &[
            ("http-port", "port that speaks HTTP only; 0 for none. `port` takes HTTP too"),
            ("http-detect", "connections to `port` may speak HTTP"),
            ("http-line-bytes", "the first line of a request"),
            ("http-head-bytes", "a request's line and headers"),
            ("http-headers", "headers of a request"),
            ("http-body-bytes", "the body of a request"),
            ("http-head-timeout", "seconds in which a request's head must come; 0 for any"),
            (
                "http-body-timeout",
                "seconds in which a request's body must come, and one more for each kilobyte of it; 0 for any",
            ),
            (
                "http-cors-origins",
                "origins whose pages may use this server (CORS), with blanks between; `*` for any",
            ),
            (
                "http-hosts",
                "names by which requests without credentials may ask for this server, with blanks between; `*` for any",
            ),
        ],
    ),
    (
        "Users",
        &[
            ("requirepass", "password of the default user"),
            ("aclfile", "file of users; ACL LOAD and ACL SAVE read and write it"),
            ("acllog-max-len", "entries of ACL LOG"),
            ("acl-pubsub-default", "which channels new users may use"),
            (
                "migrate-allow",
                "hosts, or host:port, that MIGRATE may send keys to, with blanks between; empty for any",
            ),
            ("migrate-bytes", "keys that MIGRATE has on their way, of all clients together"),
            ("enable-debug-command", "who may use DEBUG: nobody, everybody, clients of this machine"),
            ("enable-protected-configs", "who may CONFIG SET `dir` and `dbfilename`"),
        ],
    ),
    (
        "TLS",
        &[
            ("tls-port", "port that speaks TLS only; 0 for none. With a certificate `port` takes TLS too"),
            ("tls-cert-file", "the server's certificate and those between it and its authority, PEM"),
            ("tls-key-file", "the certificate's key, PEM, without a pass phrase"),
            ("tls-ca-cert-file", "authorities whose certificates clients may show, PEM"),
            ("tls-ca-cert-dir", "the same, every file of a folder"),
            ("tls-auth-clients", "whether clients must show a certificate of these authorities"),
            ("tls-auth-clients-user", "what of a client's certificate names its user: `CN`, `URI`, or `off`"),
            ("tls-protocols", "`TLSv1.2`, `TLSv1.3`, or both with a blank between; empty for both"),
            ("tls-ciphers", "suites of TLS 1.2 by OpenSSL's names, with colons between; empty for all"),
            ("tls-ciphersuites", "suites of TLS 1.3, with colons between; empty for all"),
            ("tls-prefer-server-ciphers", "the server's order of suites counts, not the client's"),
            (
                "tls-handshake-timeout",
                "seconds that a handshake may take, and that a client of `tls-port` may be silent at first",
            ),
            ("tls-session-caching", "clients may resume sessions"),
            (
                "tls-session-cache-size",
                "sessions of TLS 1.2 that are kept for clients without tickets; 0 for as many as may be, 1048576",
            ),
            ("tls-self-signed", "make a certificate for this start, for a try"),
        ],
    ),
    (
        "Programs",
        &[
            ("program-steps-max", "steps of a program, rounds of its loops, keys that they look at"),
            ("program-keys-max", "keys that a program's commands name"),
            ("program-bytes-max", "bytes that a program's writes bring"),
            ("program-memory-max", "bytes of the values that a program makes"),
            (
                "program-time-ms-max",
                "milliseconds that a program may take; others wait at most twice as long",
            ),
        ],
    ),
    (
        "Memory",
        &[
            ("maxmemory", "bytes of keys and values at which eviction begins; 0 for no limit"),
            ("maxmemory-policy", "which keys are evicted"),
            ("maxmemory-samples", "keys that are compared to find one to evict"),
            ("lfu-log-factor", "how much use it takes to raise a key's frequency"),
            ("lfu-decay-time", "minutes after which an unused key's frequency falls"),
            ("huge-pages", "put memory that is full into huge pages, in the background"),
            ("databases", "databases, at most 16"),
        ],
    ),
    (
        "Values",
        &[
            ("proto-max-bulk-len", "the longest string"),
            ("hash-max-listpack-entries", "fields of a hash in the compact form"),
            (
                "hash-max-listpack-value",
                "bytes of a field or value in it; with longer ones it says that it is a `hashtable`, and is one when it \
                 has more than 32 fields or 2 KiB",
            ),
            (
                "list-max-listpack-size",
                "elements, or as −1 to −5 the size class, of a list in the compact form",
            ),
            ("set-max-intset-entries", "members of a set of integers"),
            ("set-max-listpack-entries", "members of a set in the compact form"),
            ("set-max-listpack-value", "bytes of a member in it"),
            ("zset-max-listpack-entries", "members of a sorted set in the compact form"),
            ("zset-max-listpack-value", "bytes of a member in it"),
            ("stream-node-max-bytes", "bytes of a block of a stream; 0 for no limit"),
            ("stream-node-max-entries", "entries of a block of a stream; 0 for no limit"),
            ("hll-sparse-max-bytes", "bytes of a HyperLogLog in the sparse form"),
        ],
    ),
    (
        "What is watched",
        &[
            ("notify-keyspace-events", "which events are published"),
            (
                "commandlog-execution-slower-than",
                "microseconds from which SLOWLOG keeps a command; −1 for never",
            ),
            ("commandlog-slow-execution-max-len", "commands that SLOWLOG keeps"),
            ("commandlog-request-larger-than", "bytes from which COMMANDLOG keeps a request; −1 for never"),
            ("commandlog-large-request-max-len", "requests that it keeps"),
            ("commandlog-reply-larger-than", "bytes from which COMMANDLOG keeps a reply; −1 for never"),
            ("commandlog-large-reply-max-len", "replies that it keeps"),
            ("latency-monitor-threshold", "milliseconds from which LATENCY keeps an event; 0 for off"),
            ("latency-tracking", "histograms of the time that commands take"),
            ("latency-tracking-info-percentiles", "what INFO shows of them"),
        ],
    ),
    (
        "What is kept",
        &[
            ("appendonly", "keep a log of all that changes, and load it at the start"),
            (
                "appendfsync",
                "when the log is on the disk: before each reply, every second, when the system likes",
            ),
            (
                "strict-reads",
                "with `appendfsync always` who reads waits too until what he has seen is on the disk",
            ),
            ("appenddirname", "folder of the log, in `dir`"),
            ("appendfilename", "what the names of its files begin with"),
            (
                "auto-aof-rewrite-percentage",
                "a snapshot takes the log's place when it has grown by so much; 0: never",
            ),
            ("auto-aof-rewrite-min-size", "and has at least so many bytes"),
            ("save", "make a snapshot after so many seconds, if there were so many changes"),
            (
                "stop-writes-on-bgsave-error",
                "refuse writes when the last snapshot failed and there are save points",
            ),
            ("dbfilename", "file of snapshots that SAVE, BGSAVE and save points make"),
        ],
    ),
    (
        "The process",
        &[
            ("dir", "folder to work in; a log stays where it was begun"),
            ("shutdown-timeout", "seconds that a stopping server gives clients to read what is owed to them"),
            ("pidfile", "file for the number of the process"),
            (
                "availability-zone",
                "where the server stands, which HELLO and INFO tell clients that ask by zone",
            ),
            ("loglevel", "how much is logged"),
            ("logfile", "file for the log; standard output without one"),
            ("log-format", "what a line of the log looks like"),
            ("log-timestamp-format", "what a time in the log looks like"),
        ],
    ),
];

/// What a directive does, if it acts.
#[must_use]
pub fn about(name: &str) -> Option<&'static str> {
    ABOUT.iter().flat_map(|(_, list)| *list).find(|(other, _)| *other == name).map(|(_, text)| *text)
}
