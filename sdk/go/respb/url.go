package respb

// This file owns Options as a URL.

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// defaultPort is that of a URL without one.
const defaultPort = "6379"

// ParseURL returns the Options that a URL stands for, in the form that other clients take:
//
//	redis://[[user]:password@]host[:port][/db][?option=value&...]
//	rediss://...    with TLS; valkey and respb may stand for redis, valkeys and respbs for rediss
//	unix://[[user]:password@]/path/of/socket[?db=n&...]
//
// Options are db, name, protocol (auto, respb, resp3, resp2), dial_timeout, read_timeout, write_timeout and ping_interval; times are as "500ms" or, as
// a bare number, in seconds, and 0 or less is none. What is not known is an error.
func ParseURL(text string) (Options, error) {
	u, err := url.Parse(text)
	if err == nil {
		var o Options
		if o, err = optionsOf(u); err == nil || u.User != nil || !strings.Contains(text, "@") {
			return o, err
		}
	}
	// Not why: that would quote the text, which has the password, or a part of it where that was not written as it has to be.
	return Options{}, errors.New("respb: the URL cannot be read; in a user or password #, /, ?, @ and : are written as %23, %2F, %3F, %40 and %3A")
}

// optionsOf is ParseURL of what a URL consists of.
func optionsOf(u *url.URL) (o Options, err error) {
	switch u.Scheme {
	case "redis", "valkey", "respb":
	case "rediss", "valkeys", "respbs":
		o.TLSConfig = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	case "unix":
		o.Network, o.Addr = "unix", u.Path
	default:
		return o, errors.New("respb: a URL begins with redis://, rediss:// or unix://")
	}
	if u.User != nil {
		var given bool
		o.Username = u.User.Username()
		if o.Password, given = u.User.Password(); !given {
			return o, errors.New("respb: the URL has a user and no password; a password alone stands behind a colon, as in redis://:password@host")
		}
	}
	switch {
	case o.Network != "unix":
		host, port := u.Hostname(), u.Port()
		if host == "" {
			host = "localhost"
		}
		if port == "" {
			port = defaultPort
		}
		o.Addr = net.JoinHostPort(host, port)
		if db := strings.Trim(u.Path, "/"); db != "" {
			if err := o.setDB(db); err != nil {
				return o, err
			}
			if u.Query().Has("db") {
				return o, errors.New("respb: the URL names its database twice, in its path and as an option")
			}
		}
	case o.Addr == "" || u.Host != "":
		return o, errors.New("respb: a URL of a socket has its whole path, as in unix:///run/weft.sock")
	}
	for name, values := range u.Query() {
		if err := o.set(name, values[len(values)-1]); err != nil {
			return o, err
		}
	}
	return o, nil
}

// secondsMax is more than any timeout means, and less than a Duration holds.
const secondsMax = 1e9

func (o *Options) setDB(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("respb: a database is a number, as in redis://host/2") // what stands there may be a password
	}
	o.DB = int(n)
	return nil
}

// set sets what one option of a URL says.
func (o *Options) set(name, value string) error {
	times := map[string]*time.Duration{
		"dial_timeout": &o.DialTimeout, "read_timeout": &o.ReadTimeout, "write_timeout": &o.WriteTimeout, "ping_interval": &o.PingInterval,
	}
	switch name {
	case "db":
		return o.setDB(value)
	case "name", "client_name":
		o.Name = value
		return nil
	case "protocol":
		for p, words := range map[Protocol][2]string{Auto: {"auto", ""}, RESPB: {"respb", ""}, RESP3: {"resp3", "3"}, RESP2: {"resp2", "2"}} {
			if w := strings.ToLower(value); w == words[0] || w != "" && w == words[1] {
				o.Protocol = p
				return nil
			}
		}
		return fmt.Errorf("respb: protocol is auto, respb, resp3 or resp2, not %q", value)
	}
	field := times[name]
	if field == nil {
		return fmt.Errorf("respb: the URL has an option %q, which is not known; see ParseURL", name)
	}
	d, err := time.ParseDuration(value)
	if seconds, bare := strconv.ParseFloat(value, 64); bare == nil && math.Abs(seconds) < secondsMax {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil {
		return fmt.Errorf("respb: %s is a time, such as 500ms, not %q", name, value)
	}
	if *field = d; d <= 0 {
		*field = -1
	}
	return nil
}
