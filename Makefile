# The one place commands live. `make` prints what there is; `.ci/run` calls `make test`.
#
# BUILD=debug|release   how `run` and `test` build. Without it `run` takes release; `test` takes debug, which checks overflow.
# SECONDS=40            how long `attack`, `attack-asan` and `attack-tsan` take.
# FUZZ_SECONDS=20       how long `fuzz-smoke` runs each target; FUZZ_HOUR=3600 is that of `fuzz-long`.
# QUICK=1               `bench-server`, `bench-valkey` and `bench-go` take fewer rounds, and write no page.
# PEERS_FLAGS           further flags for `bench-server` and `bench-workloads` (`weft peers --help`).
# WORKLOADS             which files of bench/workloads `bench-workloads` and `bench-conditions` measure: names without .toml, or all.
# CONDITIONS            what `bench-conditions` measures the workloads under, all where it is not set.
# ROUNDS                how often a benchmark measures, `crash` kills and `test-gateway-long` moves slots.
# BENCH_FLAGS           further flags for `bench-cache`, such as `-sections small,large`.
# VERBOSE=1             `test` and `check` show the output of every step, not only of those that fail.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

ifneq ($(filter-out debug release,$(BUILD)),)
$(error BUILD is debug or release, not '$(BUILD)')
endif

FUZZ_SECONDS ?= 20
FUZZ_HOUR ?= 3600
ATTACK_SECONDS = $(or $(filter-out 0,$(SECONDS)),40)
export VERBOSE ?=
WORKLOADS ?= $(notdir $(basename $(wildcard bench/workloads/*.toml)))
# A registry that does not answer for a moment is no reason for a build to fail.
export CARGO_NET_RETRY ?= 10
# What modules stand on is compiled once, also where scripts/go-consumer gets them into a folder of its own.
export GOFLAGS ?= -trimpath
# Absolute, because some steps run in other folders.
export CARGO_TARGET_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
export STEPS_DIR := $(CARGO_TARGET_DIR)/steps

run_profile = $(if $(filter debug,$(BUILD)),,--release)
test_profile = $(if $(filter release,$(BUILD)),--release)

# `$(STEP) NAME COMMAND` runs a command, times it and keeps its output; `scripts/step --summary` adds them up.
STEP := scripts/step

.PHONY: help
help: ## print this list
	@echo "usage: make TARGET [BUILD=debug|release] [FUZZ_SECONDS=20] [VERBOSE=1]"
	@sed -nE 's/^([a-z][a-z-]*):[^#]*## (.*)/  \1\t\2/p' Makefile | expand -t 22

.PHONY: run
run: ## build and start the server on port 6379; ARGS="--port 7000 …" gives it flags
	@scripts/tools-needed build
	cargo build --locked $(run_profile) --package weft
	$(CARGO_TARGET_DIR)/$(or $(BUILD),release)/weft serve $(ARGS)

.PHONY: test
test: tools-needed room-needed ## run every check and test, and print a summary
	@scripts/fetch
	@rm -rf "$(STEPS_DIR)"
	@status=0; $(MAKE) -k check-steps test-steps || status=$$?; $(STEP) --summary || status=1; exit $$status

.PHONY: check
check: ## formatting, lints, generated files, repository rules
	@rm -rf "$(STEPS_DIR)"
	@status=0; $(MAKE) -k check-steps || status=$$?; $(STEP) --summary || status=1; exit $$status

.PHONY: quick
quick: ## what is fast of `check`, and that all programs compile: while you work (half a minute where the rest is built)
	@rm -rf "$(STEPS_DIR)"
	@status=0; $(MAKE) -k check-format check-table check-generated check-tidy check-builds || status=$$?; \
		$(STEP) --summary || status=1; exit $$status

.PHONY: bench
bench: bench-wire bench-load ## decoding, and the server under load; writes bench-out/ and docs/benchmarks

.PHONY: bench-wire
bench-wire: ## the wire benchmark: Valkey's parser, Weft's RESP, RESPB; writes docs/benchmarks (about 12 minutes)
	@scripts/valkey-driver || true
	@scripts/respb-driver || true
	@mkdir -p bench-out
	cargo build --locked --release --package weft
	$(CARGO_TARGET_DIR)/release/weft wire --suite --json >bench-out/wire.json
	$(CARGO_TARGET_DIR)/release/weft wire --report bench-out/wire.json --html bench-out/wire.html
	cp bench-out/wire.json docs/benchmarks/data/
	@$(MAKE) bench-pages PAGES=wire

.PHONY: bench-load
bench-load: ## Weft under load beside Debian's Redis and Valkey; presets (about 10 minutes)
	@mkdir -p bench-out
	@scripts/peers >bench-out/peers.txt
	cargo build --locked --release --package weft
	scripts/load-report $(CARGO_TARGET_DIR)/release/weft bench-out/peers.txt bench-out

.PHONY: bench-baseline
bench-baseline: ## 2,000 clients through pipelined RESP connections, by rueidis too, and through channels (about 4 minutes)
	cargo build --locked --release --package weft
	scripts/baseline $(CARGO_TARGET_DIR)/release/weft bench-out

.PHONY: bench-server
bench-server: ## Weft beside Valkey and Redis: CPU for each command, memory, latency; writes docs/benchmarks; QUICK=1 for a look, without (about 50 minutes)
	@mkdir -p bench-out
	@scripts/peers >bench-out/peers.txt
	cargo build --locked --release --package weft
	$(CARGO_TARGET_DIR)/release/weft peers --peers bench-out/peers.txt --server-core 0 --client-core 1 $(if $(QUICK),--quick) \
		--json bench-out/server.json --page bench-out/server.md $(PEERS_FLAGS)
	$(if $(QUICK),,cp bench-out/server.json docs/benchmarks/data/ && $(MAKE) bench-pages PAGES=server)

.PHONY: bench-workloads
bench-workloads: ## Weft beside Valkey over bench/workloads: CPU, latencies, memory; WORKLOADS="cache queues" for some; writes docs/benchmarks (about 25 minutes)
	@mkdir -p bench-out
	@scripts/peers >bench-out/peers.txt
	cargo build --locked --release --package weft
	$(CARGO_TARGET_DIR)/release/weft peers --peers bench-out/peers.txt --server-core 0 --client-core 1 $(PEERS_FLAGS) \
		--data docs/benchmarks/data/workloads --workloads $(addprefix bench/workloads/,$(addsuffix .toml,$(WORKLOADS)))
	@$(MAKE) bench-pages

.PHONY: bench-conditions
bench-conditions: ## the workloads with a log, over TLS, in huge pages, with two threads, Weft and Valkey alike; CONDITIONS="log tls" for some; writes docs/benchmarks (about 30 minutes)
	cargo build --locked --release --package weft
	cargo build --locked --release --package weft-engine --example two_threads
	scripts/bench-conditions $(CARGO_TARGET_DIR)/release/weft $(CARGO_TARGET_DIR)/release/examples/two_threads \
		docs/benchmarks/data/conditions $(CONDITIONS)
	@$(MAKE) bench-pages PAGES=conditions

.PHONY: bench-pages
bench-pages: ## write each page of docs/benchmarks, its plot and the index of claims from the stored data; measures nothing
	cargo build --quiet --locked --package weft
	scripts/bench-pages write $(CARGO_TARGET_DIR)/debug/weft $(PAGES)

.PHONY: bench-check
bench-check: ## fail where a page is not what its data give, data belong to no page, or README quotes a figure that is not the index's
	@cargo build --quiet --locked --package weft
	@$(STEP) bench-check scripts/bench-pages check $(CARGO_TARGET_DIR)/debug/weft

.PHONY: bench-valkey
bench-valkey: ## RESPB inside Valkey beside RESP3 of the same binary: CPU, rates, latencies, memory; PARTS=memory for one, QUICK=1 for a look; writes docs/benchmarks (about 20 minutes)
	cargo build --locked --release --package weft
	@mkdir -p bench-out/valkey
	@[[ ! -e docs/benchmarks/data/valkey-respb.json ]] || cp docs/benchmarks/data/valkey-respb.json bench-out/valkey/
	scripts/bench-valkey $(CARGO_TARGET_DIR)/release/weft bench-out/valkey $(PARTS)
	$(if $(QUICK),,cp bench-out/valkey/valkey-respb.json docs/benchmarks/data/ && $(MAKE) bench-pages PAGES=valkey-respb)

.PHONY: bench-resident
bench-resident: ## resident memory under maxmemory beside Valkey's; writes docs/benchmarks (about 4 minutes, SIZES=500 about 30)
	cargo build --locked --release --package weft
	scripts/bench-resident $(CARGO_TARGET_DIR)/release/weft "$$(dirname "$$(scripts/valkey-driver)")/source/src/valkey-server" bench-out/resident
	cp bench-out/resident/resident.json docs/benchmarks/data/
	@$(MAKE) bench-pages PAGES=resident

.PHONY: bench-gateway
bench-gateway: ## weft gateway beside twemproxy and HAProxy: CPU an operation, 10,000 clients, what Valkey behind pays; writes docs/benchmarks (about 4 minutes)
	cargo build --locked --release --package weft
	scripts/bench-gateway $(CARGO_TARGET_DIR)/release/weft "$$(dirname "$$(scripts/valkey-driver)")/source/src/valkey-server" bench-out/gateway \
		$$(scripts/debian-tools nutcracker haproxy)
	cp bench-out/gateway/gateway.json docs/benchmarks/data/
	@$(MAKE) bench-pages PAGES=gateway

.PHONY: bench-beside
bench-beside: ## what a client waits that sends now and then, beside busy ones and slow commands, by Weft and by Valkey; writes docs/benchmarks (about 11 minutes)
	cargo build --locked --release --package weft
	scripts/bench-beside $(CARGO_TARGET_DIR)/release/weft "$$(dirname "$$(scripts/valkey-driver)")/source/src/valkey-server" bench-out/beside
	@mkdir -p docs/benchmarks/data/beside
	cp bench-out/beside/beside.json docs/benchmarks/data/beside/
	@$(MAKE) bench-pages PAGES=beside

.PHONY: bench-tls
bench-tls: ## Weft beside Valkey under TLS: CPU for each command and each handshake; writes its part of the page (about 3 minutes, and once Valkey's build)
	cargo build --locked --release --package weft
	scripts/tls-report $(CARGO_TARGET_DIR)/release/weft docs/benchmarks/data/tls
	@$(MAKE) bench-pages PAGES=tls

.PHONY: bench-scripts
bench-scripts: ## scripts and functions beside Valkey: CPU an operation, two threads; writes docs/benchmarks (about 4 minutes)
	cargo build --locked --release --package weft
	cargo build --locked --release --package weft-engine --example two_threads
	scripts/bench-scripts $(CARGO_TARGET_DIR)/release/weft $(CARGO_TARGET_DIR)/release/examples/two_threads bench-out/scripts
	cp bench-out/scripts/scripts.json docs/benchmarks/data/
	@$(MAKE) bench-pages PAGES=scripts

.PHONY: bench-programs
bench-programs: ## programs beside Lua and commands, triggers, what others wait; writes docs/benchmarks (about 3 minutes)
	cargo build --locked --release --package weft
	@mkdir -p bench-out/programs
	cargo test --locked --package weft-engine --test instructions cliffs -- --include-ignored --nocapture >bench-out/programs/cliffs.txt
	scripts/bench-programs $(CARGO_TARGET_DIR)/release/weft bench-out/programs bench-out/programs/cliffs.txt
	cp bench-out/programs/programs.json docs/benchmarks/data/
	@$(MAKE) bench-pages PAGES=programs

.PHONY: bench-handshakes
bench-handshakes: ## what HANDSHAKES=10000 at once cost a client that has a session; writes its part of docs/benchmarks/tls.md (2 minutes)
	cargo build --locked --release --package weft --package weft-attacker
	scripts/handshakes-report $(CARGO_TARGET_DIR)/release/weft-attacker $(CARGO_TARGET_DIR)/release/weft \
		$(or $(HANDSHAKES),10000) docs/benchmarks/tls.md

.PHONY: bench-http
bench-http: ## commands over RESP, RESPB and HTTP: clients in Go, server CPU, where the difference comes from; writes the page (about 10 minutes)
	cargo build --locked --release --package weft
	scripts/http-report $(CARGO_TARGET_DIR)/release/weft docs/benchmarks/data/http
	@$(MAKE) bench-pages PAGES=http

.PHONY: bench-decode
bench-decode: ## nanoseconds per command, RESP beside RESPB
	cargo bench --locked --package weft-protocol --bench decode

.PHONY: bench-proxy
bench-proxy: ## what a proxy pays for frames without a length, bare and in batches: the figures of ADR 0023 (about a minute)
	cargo run --locked --release --package weft-client --example proxy_cost

.PHONY: bench-go
bench-go: ## the Go SDK: parsing, writing, clients; writes verdicts to docs/benchmarks; QUICK=1 for a look (about 6 minutes)
	cargo build --locked --release --package weft
	WEFT_BIN=$(CARGO_TARGET_DIR)/release/weft scripts/bench-go \
		$(if $(QUICK),bench-out/go,docs/benchmarks/go-resp/turns docs/benchmarks/go-resp.md)

.PHONY: bench-cache
bench-cache: ## the Go cache kit: codecs, batches, memory, system calls; writes docs/benchmarks (as root, about 6 minutes)
	cargo build --locked --release --package weft
	cd sdk/go/cache/bench && go build -o $(CARGO_TARGET_DIR)/cache-bench .
	cd sdk/go/cache/bench && $(CARGO_TARGET_DIR)/cache-bench -weft $(CARGO_TARGET_DIR)/release/weft $(BENCH_FLAGS)

.PHONY: bench-cache-kit
bench-cache-kit: ## what the Go cache kit costs over the clients below it; writes verdicts to docs/benchmarks; PAIRS=8 for a look (about 2 minutes)
	cd sdk/go/cache/internal/kitbench && GOMAXPROCS=1 PAIRS=$${PAIRS:-100} \
		PAIRS_PAGE=$(if $(PAIRS),,$(CURDIR)/docs/benchmarks/go-cache-kit.md) taskset -c 0 go test -count=1 -run Pairs -v .

.PHONY: bench-cache-rivals
bench-cache-rivals: ## the Go cache kit beside other Go caches: behaviour and cost; writes docs/benchmarks (about 4 minutes)
	@mkdir -p docs/benchmarks/go-cache-rivals
	cd sdk/go/cache/internal/rivals && RIVALS_OUT=$(CURDIR)/docs/benchmarks/go-cache-rivals RIVALS_ROUNDS=$${RIVALS_ROUNDS:-25} \
		go test -v -count=1 -timeout 60m .

.PHONY: gen
gen: ## write everything that is generated: code and pages from spec/, vectors, wire sizes, Go's shared code, goldens, the console, benchmark pages
	cargo xtask gen
	cargo xtask vectors
	WEFT_WRITE=1 cargo test --quiet --package weft-protocol --test wire_sizes
	WEFT_WRITE=1 cargo test --quiet --package weft-engine --test configuration_page
	WEFT_WRITE=1 cargo test --quiet --package weft --test inspect
	cd sdk/go && go run ./cache/internal/generate
	@if scripts/node-there; then scripts/console write; else echo "left out: the console (npm and Node 20 or later are missing)"; fi
	@$(MAKE) bench-pages
	@echo "left out: sdk/go/cache/bench/fixture (its own ./generate, which needs protoc)"

.PHONY: fuzz-smoke
fuzz-smoke: ## run each fuzz target for FUZZ_SECONDS (needs a nightly toolchain)
	scripts/fuzz $(FUZZ_SECONDS)

.PHONY: fuzz-long
fuzz-long: ## the same for an hour each, what was found on the way kept in tests/fuzz/corpus (FUZZ_HOUR=3600 seconds)
	scripts/fuzz $(FUZZ_HOUR)

.PHONY: attack
attack: ## hostile clients against the server for SECONDS, while honest ones check every reply
	cargo build --locked --release --package weft --package weft-attacker
	$(CARGO_TARGET_DIR)/release/weft-attacker --server $(CARGO_TARGET_DIR)/release/weft --seconds $(ATTACK_SECONDS) $(ATTACK_FLAGS)

.PHONY: attack-gateway
attack-gateway: ## the same against a gateway in front of a server
	@$(MAKE) attack ATTACK_FLAGS="--gateway $(ATTACK_FLAGS)"

.PHONY: attack-asan
attack-asan: ## the same, the server under AddressSanitizer and LeakSanitizer (needs a nightly toolchain)
	scripts/sanitized attack $(ATTACK_SECONDS) $(ATTACK_FLAGS)

.PHONY: test-apps
test-apps: ## what people put on Redis, by its own packages: BullMQ, Celery, RQ, asynq, Redisson, Sidekiq, locks, limiters (about 8 minutes)
	@scripts/tools-needed apps
	@cargo build --quiet --locked $(test_profile) --package weft
	@$(STEP) test-apps tests/apps/run $(CARGO_TARGET_DIR)/$(or $(BUILD),debug)/weft

.PHONY: test-valkey
test-valkey: ## RESPB inside Valkey: builds it, our scenarios, and Valkey's own tests beside the unpatched and through RESPB (about 25 minutes, the first time)
	@cargo build --quiet --locked $(test_profile) --package weft
	@integrations/valkey/build >/dev/null
	@$(STEP) test-valkey integrations/valkey/tests/run "$$(integrations/valkey/build)" $(CARGO_TARGET_DIR)/$(or $(BUILD),debug)/weft
	@$(STEP) test-valkey-units integrations/valkey/tests/compare "$$(integrations/valkey/build)"
	@$(STEP) test-valkey-relayed integrations/valkey/tests/relayed "$$(integrations/valkey/build)"

.PHONY: attack-tsan
attack-tsan: ## the same under ThreadSanitizer (needs a nightly toolchain with rust-src)
	scripts/sanitized attack-threads $(ATTACK_SECONDS) $(ATTACK_FLAGS)

.PHONY: test-tsan
test-tsan: ## tests of the store, the engine and the server under ThreadSanitizer (needs a nightly toolchain with rust-src)
	scripts/sanitized threads

.PHONY: crash
crash: ## kill a server under clients ROUNDS times, while it loads and while it makes snapshots; what was acknowledged must be there
	WEFT_CRASH_ROUNDS=$(or $(ROUNDS),1000) cargo test --locked --release --package weft --test crash -- --nocapture

.PHONY: crash-disk
crash-disk: ## the power goes at every step of writing logs and snapshots, and of starts, with new seeds for SECONDS (3600)
	WEFT_DISK_SECONDS=$(or $(filter-out 0,$(SECONDS)),3600) cargo test --locked --release --package weft-persist \
		--test log --test snapshot -- --nocapture step half

.PHONY: differential-long
differential-long: ## random commands by Weft and Valkey, and by its fast ways and its full way: each group in each mode for CELL_SECONDS=600, at low priority (two days); then the proofs of effects and undo for PROOF_SECONDS=3600
	cargo test --locked --release --package weft-engine --test differential --test effects --no-run
	scripts/differential-long $(or $(CELL_SECONDS),600) $(or $(PROOF_SECONDS),3600)

.PHONY: bench-durability
bench-durability: ## log and snapshots beside Valkey: CPU, latency, memory, recovery; PARTS=everysec for one; writes docs/benchmarks (about 10 minutes)
	cargo build --locked --release --package weft
	@mkdir -p bench-out/durability
	@[[ ! -e docs/benchmarks/data/durability.json ]] || cp docs/benchmarks/data/durability.json bench-out/durability/
	scripts/bench-durability $(CARGO_TARGET_DIR)/release/weft bench-out/durability $(PARTS)
	cp bench-out/durability/durability.json docs/benchmarks/data/
	@$(MAKE) bench-pages PAGES=durability

.PHONY: console
console: ## build the console's files, which the server embeds, from console/ (needs Node)
	scripts/console write

.PHONY: console-picture
console-picture: ## take the pictures of the console that README shows, of a server under load (needs Node and Chromium, 2 minutes)
	cargo build --locked --release --package weft
	scripts/console picture $(CARGO_TARGET_DIR)/release/weft

.PHONY: release
release: ## packages in dist/: a .deb, archives, an image, checksums; twice, which must give the same bytes (needs what is committed)
	scripts/release twice dist

.PHONY: test-packages
test-packages: ## what `release` has made: installed in a clean Debian that boots, upgraded, removed; the image (as root)
	@scripts/tools-needed release
	scripts/test-packages dist

.PHONY: test-cross
test-cross: ## build the Go SDK for macOS and Windows; test the protocol crate and the C library on arm64 and on big-endian s390x, emulated (Debian only)
	cd sdk/go && GOOS=darwin go build ./... && GOOS=windows go build ./resp ./respb
	scripts/test-cross
	$(MAKE) -C clib machines

.PHONY: clean
clean: ## remove what builds and tests have written
	cargo clean
	rm -rf bench-out tests/fuzz/target tests/fuzz/corpus tests/fuzz/artifacts
	find . -name 'callgrind.out.*' -type f -not -path './.git/*' -delete

# The parts of `check` and `test`; each can be called alone.

.PHONY: tools-needed
tools-needed: ## what the tests want of the system: installed as root on Debian, otherwise named
	@scripts/tools-needed build test

.PHONY: room-needed
room-needed:
	@scripts/room-needed

.PHONY: check-steps
check-steps: check-format check-clippy check-table check-generated check-tidy check-go

.PHONY: check-format
check-format:
	@$(STEP) check-format cargo fmt --all --check

.PHONY: check-clippy
check-clippy:
	@$(STEP) check-clippy cargo clippy --locked --workspace --all-targets -- -D warnings

# Without lints, which `check-clippy` has.
.PHONY: check-builds
check-builds:
	@$(STEP) check-builds cargo check --quiet --locked --workspace

.PHONY: check-table
check-table:
	@$(STEP) check-table cargo xtask commands check

.PHONY: check-generated
check-generated:
	@$(STEP) check-generated cargo xtask gen --check
	@$(STEP) check-vectors cargo xtask vectors --check
	@$(STEP) check-citations cargo xtask citations

.PHONY: check-tidy
check-tidy:
	@$(STEP) check-tidy cargo xtask tidy

.PHONY: check-go
check-go:
	@$(STEP) check-go scripts/check-go

.PHONY: test-steps
test-steps: test-rust bench-check test-beside test-attack test-attack-gateway

.PHONY: test-rust
test-rust:
	@$(STEP) test-rust scripts/test-rust $(test_profile)

# Side by side: counting instructions does not mind company and mostly compiles, Go and C compile too, and what has servers
# and clients of others mostly waits.
test_go_steps := test-go-race test-go-modules test-go-consumer-short test-c test-go test-go-differential
test_e2e_steps := test-go-e2e test-e2e test-console test-packages-short test-apps-short test-valkey-short

.PHONY: test-beside
test-beside:
	@$(MAKE) test-instructions & counted=$$!; $(MAKE) -k $(test_e2e_steps) & e2e=$$!; status=0; \
		$(MAKE) -k $(test_go_steps) || status=$$?; \
		wait $$counted || status=$$?; wait $$e2e || status=$$?; exit $$status

# The tests themselves are those that `test-rust` has built; what they count they build for release. A test for release would have all
# crates built once more, since tests unwind where programs abort.
.PHONY: test-instructions
test-instructions:
	@$(STEP) test-instructions cargo test --locked $(test_profile) --workspace --test instructions -- --include-ignored

.PHONY: test-c
test-c:
	@$(STEP) test-c $(MAKE) -C clib test

.PHONY: test-go
test-go:
	@cd sdk/go && ../../$(STEP) test-go go test -v -timeout=60m -count=1 ./...

.PHONY: test-go-race
test-go-race:
	@cd sdk/go && ../../$(STEP) test-go-race go test -v -race -timeout=60m -count=1 ./...

# Against the Rust decoders, through the C library.
.PHONY: test-go-differential
test-go-differential:
	@$(STEP) test-go-differential scripts/go-differential

# With clients and servers that others wrote, and with weft serve.
.PHONY: test-go-e2e
test-go-e2e:
	@$(STEP) test-go-e2e scripts/go-e2e

# What needs somebody else's Go code is a module of its own.
.PHONY: test-go-modules
test-go-modules:
	@$(STEP) test-go-modules scripts/go-modules

# As somebody gets them who is outside of this repository; `make test-go-consumer` takes each module alone with its lowest Go too,
# of which `go vet` says meanwhile where something newer of the standard library is used.
.PHONY: test-go-consumer-short
test-go-consumer-short:
	@$(STEP) test-go-consumer-short scripts/go-consumer --short

.PHONY: test-go-consumer
test-go-consumer: ## the Go modules as others get them, each alone with its lowest Go and its oldest upstreams, and all together (about 7 minutes)
	scripts/go-consumer

.PHONY: test-e2e
test-e2e:
	@cargo build --quiet --locked $(test_profile) --package weft
	@$(STEP) test-e2e tests/e2e/run $(CARGO_TARGET_DIR)/$(or $(BUILD),debug)/weft

.PHONY: test-gateway-long
test-gateway-long: ## a gateway in front of a cluster whose slots and nodes change places again and again: ROUNDS=50 (about 5 minutes), NODE=redis-server for another server than Valkey
	@cargo build --quiet --locked $(test_profile) --package weft
	@cd tests/e2e && WEFT=$(abspath $(CARGO_TARGET_DIR))/$(or $(BUILD),debug)/weft WEFT_ROUNDS=$(or $(ROUNDS),50) \
		WEFT_NODE=$(NODE) python3 -B -m unittest -v test_gateway_cluster test_gateway_replicas

# That what the server embeds is what the sources make, and each page in Chromium.
.PHONY: test-console
test-console:
	@$(STEP) check-console scripts/console check
	@cargo build --quiet --locked $(test_profile) --package weft
	@$(STEP) test-console scripts/console test $(CARGO_TARGET_DIR)/$(or $(BUILD),debug)/weft

# How packages are laid out, by those of the program that is tested; `make release test-packages` installs real ones.
.PHONY: test-packages-short
test-packages-short:
	@cargo build --quiet --locked $(test_profile) --package weft
	@$(STEP) test-packages-short scripts/test-packages short $(CARGO_TARGET_DIR)/$(or $(BUILD),debug)/weft

# Few jobs of each; `make test-apps` runs all.
.PHONY: test-apps-short
test-apps-short:
	@cargo build --quiet --locked $(test_profile) --package weft
	@$(STEP) test-apps-short tests/apps/run $(CARGO_TARGET_DIR)/$(or $(BUILD),debug)/weft --short

# That the lines for Valkey's files are put in as they should; `make test-valkey` builds a server with them.
.PHONY: test-valkey-short
test-valkey-short:
	@$(STEP) test-valkey-short python3 -B integrations/valkey/tests/test_insertions.py -v

# Hostile clients for a while; `make attack SECONDS=3600` takes its time.
.PHONY: test-attack
test-attack:
	@cargo build --quiet --locked $(test_profile) --package weft --package weft-attacker
	@$(STEP) test-attack $(CARGO_TARGET_DIR)/$(or $(BUILD),debug)/weft-attacker \
		--server $(CARGO_TARGET_DIR)/$(or $(BUILD),debug)/weft --seconds $(ATTACK_SECONDS)

# The same against a gateway in front of a server, for a moment.
.PHONY: test-attack-gateway
test-attack-gateway:
	@cargo build --quiet --locked $(test_profile) --package weft --package weft-attacker
	@$(STEP) test-attack-gateway $(CARGO_TARGET_DIR)/$(or $(BUILD),debug)/weft-attacker \
		--server $(CARGO_TARGET_DIR)/$(or $(BUILD),debug)/weft --gateway --seconds 12
