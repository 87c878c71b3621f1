package main

// A GET over each wire, with one thing after the other taken away: the client library, the answer's JSON, the headers,
// the connection that stays, the store. A raw client has its request ready and looks for the value in what comes back.

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// browser is what a browser says beside Host.
var browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n" +
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n" +
	"DNT: 1\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: none\r\nSec-Fetch-User: ?1\r\n" +
	"Priority: u=0, i\r\n" +
	"Cookie: session=" + strings.Repeat("0123456789abcdef", 24) + "\r\n"

func rawRows() []*row {
	head := "GET /get/k:0 HTTP/1.1\r\nHost: " + *addr + "\r\n"
	bearer := head + "Authorization: Bearer token\r\n"
	respGet := "*2\r\n$3\r\nGET\r\n$3\r\nk:0\r\n"
	respReply := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
	respb := "\x00\x00\x00\x00\x00\x03k:0"
	respbReply := "\x82\x10\x00\x00" + value
	end := fmt.Sprintf("\r\n\r\n{\"result\":%q}", value)
	end2 := "\r\n\r\n" + respReply
	own := []int{*pid}
	rows := []*row{
		raw(*addr, own, "RESP", respGet, respReply),
		raw(*addr, own, "RESPB", respb, respbReply),
		raw(*addr, own, "HTTP, Host and Authorization", bearer+"\r\n", end),
		raw(*addr, own, "HTTP, Host alone", head+"\r\n", end),
		raw(*addr, own, "HTTP, a browser's headers", bearer+browser+"\r\n", end),
		raw(*addr, own, "HTTP, the reply in RESP2", bearer+"Upstash-Response-Format: resp2\r\n\r\n", end2),
		raw(*addr, own, "HTTP, 16 requests pipelined", strings.Repeat(bearer+"\r\n", 16), strings.Repeat(end, 16)),
		raw(*addr, own, "RESP, 16 requests pipelined", strings.Repeat(respGet, 16), strings.Repeat(respReply, 16)),
		netHTTP("net/http, JSON decoded", &http.Client{}, true),
		netHTTP("net/http, JSON not decoded", &http.Client{}, false),
		netHTTP("net/http, a connection each", &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, true),
	}
	for _, floor := range floors {
		request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer token\r\n\r\n", floor.path, floor.addr)
		rows = append(rows, raw(floor.addr, floor.pids, "HTTP, "+floor.name, request, "\r\n\r\n"+floor.end))
	}
	return rows
}

// raw sends a request as it is, and takes bytes until the last reply's end has come: once for each request.
func raw(to string, pids []int, way, request, reply string) *row {
	var conn net.Conn
	sent, expected := []byte(request), []byte(reply)
	buffer := make([]byte, 64<<10)
	replies := 1
	if strings.Contains(way, "16 requests") {
		replies, expected = 16, expected[:len(expected)/16]
	}
	once := func() {
		if conn == nil {
			conn = must(net.DialTimeout("tcp", to, time.Minute))
		}
		must(conn.Write(sent))
		filled, at := 0, 0
		for left := replies; left > 0; {
			filled += must(conn.Read(buffer[filled:]))
			for left > 0 {
				found := bytes.Index(buffer[at:filled], expected)
				if found < 0 {
					break
				}
				at += found + len(expected)
				left--
			}
			if left > 0 && filled == len(buffer) {
				check(fmt.Errorf("%s: no %q in %q", way, reply, buffer))
			}
		}
		same(way+": bytes behind the reply", filled-at, 0)
	}
	return &row{Operation: "GET", Way: way, pids: pids, run: func(n int) {
		// Of a pipeline each request counts.
		for range n / replies {
			once()
		}
	}}
}

// netHTTP is GET by net/http; decoded as JSON, or looked at as bytes.
func netHTTP(way string, client *http.Client, decodes bool) *row {
	w := &web{client: client, url: "http://" + *addr}
	once := w.get
	if !decodes {
		wanted := fmt.Sprintf("{\"result\":%q}", value)
		once = func() {
			request := must(http.NewRequest("GET", w.url+"/get/k:0", nil))
			request.Header.Set("Authorization", "Bearer token")
			response := must(w.client.Do(request))
			same(way, string(must(io.ReadAll(response.Body))), wanted)
			check(response.Body.Close())
		}
	}
	return &row{Operation: "GET", Way: way, pids: []int{*pid}, run: repeat(once)}
}
