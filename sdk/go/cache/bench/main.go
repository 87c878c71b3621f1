// Command bench measures what it costs to keep Go structs in a cache: ten codecs, five sizes of structs, one by one, pipelined and in
// batches, by hand and through sdk/go/cache, against redis-server and weft serve. Every value is read back and compared.
//
//	go run . -weft ../../../../target/release/weft
//
// runs everything, a section at a time, each in a process of its own; raw figures go to -json, the report to -page, plots beside it.
// -sections runs some of them and keeps the figures of the others, so that it can be done in pieces.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// config is what the flags say.
type config struct {
	redis, weft            string
	serverCore, clientCore int
	rounds                 int
	only                   *regexp.Regexp
	json, page             string
	section                string
	sections               []string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	var c config
	flag.StringVar(&c.redis, "redis", "redis-server", "redis-server")
	flag.StringVar(&c.weft, "weft", "weft", "weft")
	flag.IntVar(&c.serverCore, "server-core", 0, "the core of the servers; -1 for any")
	flag.IntVar(&c.clientCore, "client-core", 0, "the core of this program; -1 for any")
	flag.IntVar(&c.rounds, "rounds", 40, "how often each row takes its turn")
	only := flag.String("only", "", "regular expression: only rows whose name SHAPE/CODEC/OP/TARGET/MODE matches")
	flag.StringVar(&c.json, "json", "../../../../docs/benchmarks/data/go-cache.json", "file of the raw figures")
	flag.StringVar(&c.page, "page", "../../../../docs/benchmarks/go-cache.md", "file of the report; plots go to the folder of its name")
	flag.StringVar(&c.section, "section", "", "run one section in this process")
	sections := flag.String("sections", strings.Join(sectionNames(), ","), "what to run; none to write the report only")
	flag.Parse()
	c.only = regexp.MustCompile(*only)
	if *sections != "" && *sections != "none" {
		c.sections = strings.Split(*sections, ",")
	}
	if err := c.run(); err != nil {
		log.Fatal(err)
	}
}

func (c *config) run() error {
	if c.section != "" {
		return c.runSection()
	}
	for i, name := range c.sections {
		args := append([]string{"-section", name}, os.Args[1:]...)
		cmd := exec.Command(os.Args[0], args...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d of %d, %s", envSection, i+1, len(c.sections), name))
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("section %s: %w", name, err)
		}
	}
	r, err := load(c.json)
	if err != nil {
		return err
	}
	if err := r.save(c.json); err != nil { // in the form that versions are compared in, whoever has merged it
		return err
	}
	return r.write(c.page)
}

// sectionNames are in the order in which they run: what is measured, then what only is counted.
func sectionNames() []string {
	names := append([]string{"codecs", "local"}, shapes...)
	names = append(names, placements...)
	for _, s := range shapes {
		names = append(names, callsPrefix+s)
	}
	return append(names, "profiles")
}

// placements are sections that measure JSON with servers and client elsewhere: on a core each, and wherever the kernel puts them.
var placements = []string{"apart", "anywhere"}

// callsPrefix names the sections that count system calls. While they are counted each costs more, so nothing is timed there.
const callsPrefix = "calls-"

func (c *config) runSection() error {
	shape, counting := strings.CutPrefix(c.section, callsPrefix)
	placement := ""
	if slices.Contains(placements, c.section) {
		placement = c.section
		c.only = regexp.MustCompile("^(small|large)/" + regexp.QuoteMeta(codecJSON) + "/")
		c.serverCore, c.clientCore = -1, -1
		if c.section == "apart" {
			c.serverCore, c.clientCore = 0, 1
		}
	}
	again, err := prepare(c.clientCore, counting)
	if err != nil || again {
		return err
	}
	r, err := load(c.json)
	if errors.Is(err, os.ErrNotExist) {
		r, err = &report{}, nil
	}
	if err != nil {
		return err
	}
	r.describe(c, placement)
	switch c.section {
	case "codecs":
		err = c.measureCodecs(r)
	case "local":
		err = c.measureLocal(r)
	case "profiles":
		err = c.measureProfiles(r)
	case "apart", "anywhere":
		for _, shape := range []string{"small", "large"} {
			if err == nil {
				err = c.measureShape(r, shape, placement, false)
			}
		}
	default:
		err = c.measureShape(r, shape, "", counting)
	}
	if err != nil {
		return err
	}
	return r.save(c.json)
}
