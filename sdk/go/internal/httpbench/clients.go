package main

// Clients as programs have them: go-redis, respb, net/http with encoding/json.

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/weft-db/weft/sdk/go/respb"
)

const value = "a value of 16 by"

var (
	background = context.Background()
	keys       = [...]string{"k:0", "k:1", "k:2", "k:3", "k:4", "k:5", "k:6", "k:7", "k:8", "k:9"}
)

// client is what a benchmark asks of each way; what comes back is compared inside.
type client interface {
	get()
	set()
	// incr counts a key of its own, from 1.
	incr()
	hset()
	hget()
	lpush()
	mget()
	pipeline()
}

// rows gives the table of operations, and the one that takes things away.
func rows() (table, reasons []*row) {
	seed()
	ways := []struct {
		name   string
		client client
	}{
		{"RESP, go-redis", &resp{client: redis.NewClient(&redis.Options{Addr: *addr})}},
		{"RESPB, respb", &binary{conn: must(respb.Dial(background, respb.Options{Addr: *addr}))}},
		{"HTTP, net/http", &web{client: &http.Client{}, url: "http://" + *addr}},
	}
	operations := []struct {
		name string
		run  func(client)
	}{
		{"GET", client.get}, {"SET", client.set}, {"INCR", client.incr}, {"HSET", client.hset}, {"HGET", client.hget},
		{"LPUSH", client.lpush}, {"MGET of 10", client.mget}, {"pipeline of 10 GET", client.pipeline},
		{"mixed: SET, HSET, GET, INCR", func(c client) { c.set(); c.hset(); c.get(); c.incr() }},
	}
	for _, operation := range operations {
		for _, way := range ways {
			run := repeat(func() { operation.run(way.client) })
			table = append(table, &row{Operation: operation.name, Way: way.name, pids: []int{*pid}, run: run})
		}
	}
	return table, rawRows()
}

func repeat(once func()) func(int) {
	return func(n int) {
		for range n {
			once()
		}
	}
}

// seed stores what is read, and empties the rest.
func seed() {
	client := redis.NewClient(&redis.Options{Addr: *addr})
	defer client.Close()
	check(client.FlushAll(background).Err())
	for _, key := range keys {
		check(client.Set(background, key, value, 0).Err())
	}
	check(client.HSet(background, "h", "f", value).Err())
}

type resp struct {
	client       *redis.Client
	count, items int64
}

func (r *resp) get() { same("GET", must(r.client.Get(background, "k:0").Result()), value) }
func (r *resp) set() { same("SET", must(r.client.Set(background, "k:0", value, 0).Result()), "OK") }
func (r *resp) incr() {
	r.count++
	same("INCR", must(r.client.Incr(background, "n:resp").Result()), r.count)
}
func (r *resp) hset() { same("HSET", must(r.client.HSet(background, "h", "f", value).Result()), 0) }
func (r *resp) hget() { same("HGET", must(r.client.HGet(background, "h", "f").Result()), value) }
func (r *resp) lpush() {
	r.items++
	same("LPUSH", must(r.client.LPush(background, "l:resp", value).Result()), r.items)
}
func (r *resp) mget() {
	for _, got := range must(r.client.MGet(background, keys[:]...).Result()) {
		same[any]("MGET", got, value)
	}
}
func (r *resp) pipeline() {
	pipe := r.client.Pipeline()
	for _, key := range keys {
		pipe.Get(background, key)
	}
	for _, got := range must(pipe.Exec(background)) {
		same("GET", got.(*redis.StringCmd).Val(), value)
	}
}

type binary struct {
	conn         *respb.Conn
	count, items int64
}

func (b *binary) get() { same("GET", must(b.conn.Get(background, "k:0")), value) }
func (b *binary) set() { same("SET", must(b.conn.Set(background, "k:0", value)), "OK") }
func (b *binary) incr() {
	b.count++
	same("INCR", must(b.conn.Incr(background, "n:respb")), b.count)
}
func (b *binary) hset() {
	same("HSET", must(b.conn.Hset(background, "h", respb.HsetData{Field: "f", Value: value})), 0)
}
func (b *binary) hget() { same("HGET", must(b.conn.Hget(background, "h", "f")), value) }
func (b *binary) lpush() {
	b.items++
	same("LPUSH", must(b.conn.Lpush(background, "l:respb", value)), b.items)
}
func (b *binary) mget() {
	for _, got := range must(b.conn.Mget(background, keys[:]...)) {
		same("MGET", *got, value)
	}
}
func (b *binary) pipeline() {
	pipe := b.conn.Pipeline()
	var results [len(keys)]*respb.Result[string]
	for i, key := range keys {
		results[i] = pipe.Get(key)
	}
	must(pipe.Exec(background))
	for _, result := range results {
		same("GET", must(result.Get()), value)
	}
}

// web speaks HTTP as a program without a library for it would.
type web struct {
	client       *http.Client
	url          string
	count, items int64
}

// answer is what a command comes back as.
type answer[T any] struct {
	Result T      `json:"result"`
	Error  string `json:"error"`
}

func ask[T any](w *web, method, path, body string) T {
	var reader io.Reader
	if body != "" {
		reader = bytes.NewReader([]byte(body))
	}
	request := must(http.NewRequest(method, w.url+path, reader))
	request.Header.Set("Authorization", "Bearer token")
	response := must(w.client.Do(request))
	defer response.Body.Close()
	var answer T
	check(json.NewDecoder(response.Body).Decode(&answer))
	// What is left of the body is read, so that the connection is used again.
	must(io.Copy(io.Discard, response.Body))
	same(path, response.StatusCode, http.StatusOK)
	return answer
}

func (w *web) get() { same("GET", ask[answer[string]](w, "GET", "/get/k:0", "").Result, value) }
func (w *web) set() { same("SET", ask[answer[string]](w, "POST", "/set/k:0", value).Result, "OK") }
func (w *web) incr() {
	w.count++
	same("INCR", ask[answer[int64]](w, "POST", "/incr/n:http", "").Result, w.count)
}
func (w *web) hset() { same("HSET", ask[answer[int64]](w, "POST", "/hset/h/f", value).Result, 0) }
func (w *web) hget() { same("HGET", ask[answer[string]](w, "GET", "/hget/h/f", "").Result, value) }
func (w *web) lpush() {
	w.items++
	same("LPUSH", ask[answer[int64]](w, "POST", "/lpush/l:http", value).Result, w.items)
}
func (w *web) mget() {
	path := "/mget"
	for _, key := range keys {
		path += "/" + key
	}
	for _, got := range ask[answer[[]string]](w, "GET", path, "").Result {
		same("MGET", got, value)
	}
}
func (w *web) pipeline() {
	commands := make([][]string, 0, len(keys))
	for _, key := range keys {
		commands = append(commands, []string{"GET", key})
	}
	body := must(json.Marshal(commands))
	answers := ask[[]answer[string]](w, "POST", "/pipeline", string(body))
	same("/pipeline", len(answers), len(keys))
	for _, got := range answers {
		same("GET", got.Result, value)
	}
}
