// Command before is a small server on redcon.
package main

import (
	"flag"
	"log"
	"strings"
	"sync"

	"github.com/tidwall/redcon"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:6380", "where to listen")
	flag.Parse()

	var mu sync.RWMutex
	var news redcon.PubSub
	items := map[string][]byte{}
	err := redcon.ListenAndServe(*addr,
		func(conn redcon.Conn, cmd redcon.Command) {
			switch strings.ToLower(string(cmd.Args[0])) {
			default:
				conn.WriteError("ERR unknown command '" + string(cmd.Args[0]) + "'")
			case "ping":
				conn.WriteString("PONG")
			case "quit":
				conn.WriteString("OK")
				conn.Close()
			case "set":
				if len(cmd.Args) != 3 {
					conn.WriteError("ERR wrong number of arguments for '" + string(cmd.Args[0]) + "' command")
					return
				}
				mu.Lock()
				items[string(cmd.Args[1])] = cmd.Args[2]
				mu.Unlock()
				conn.WriteString("OK")
			case "get":
				if len(cmd.Args) != 2 {
					conn.WriteError("ERR wrong number of arguments for '" + string(cmd.Args[0]) + "' command")
					return
				}
				mu.RLock()
				value, ok := items[string(cmd.Args[1])]
				mu.RUnlock()
				if ok {
					conn.WriteBulk(value)
				} else {
					conn.WriteNull()
				}
			case "keys":
				mu.RLock()
				defer mu.RUnlock()
				conn.WriteArray(len(items))
				for key := range items {
					conn.WriteBulkString(key)
				}
			case "subscribe":
				for _, channel := range cmd.Args[1:] {
					news.Subscribe(conn, string(channel))
				}
			case "publish":
				conn.WriteInt(news.Publish(string(cmd.Args[1]), string(cmd.Args[2])))
			}
		},
		func(conn redcon.Conn) bool { return true },
		func(conn redcon.Conn, err error) {},
	)
	log.Fatal(err)
}
