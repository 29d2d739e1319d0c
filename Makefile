# Each target installs the Debian packages that it needs; Rust and gcc must be there.

export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
LAB := $(TARGET)/release/terse-lab
SECONDS ?= 10
ARGS ?=
ADVISORIES := $(or $(CARGO_HOME),$(HOME)/.cargo)/advisory-dbs

# Kernels of this machine's kind have pages of 4, 16 or 64 KB: an allocator that is made for the largest runs on all of them.
ifeq ($(shell uname -m),aarch64)
export JEMALLOC_SYS_WITH_LG_PAGE ?= 16
endif

.PHONY: help build release dist deb image demo test bench frontier releases hostile soak svn-experiment configs conformance fuzz miri docs tls-scan page package-test image-test reloads real-programs

help:
	@echo "make build          builds the program: $(TARGET)/release/terse"
	@echo "make release        the same by a profile of its own traffic, some tenth less CPU: $(TARGET)/profiled/terse"
	@echo "make demo           starts servers and terse in front of them, and shows what compression does (PORT=8080)"
	@echo "make test           everything that must hold before a change goes in"
	@echo "make bench          terse beside haproxy, nginx and gzip: bench/results.md (HAPROXY=, HAPROXY2=, NGINX=, TERSE_CORPORA=, ARGS=--quick)"
	@echo "make frontier       our coders beside those of others, bytes and time at every level: docs/frontier.md (ARGS=--rounds 1 js)"
	@echo "make hostile        hostile clients and servers of HTTP/2: what they cost in memory and in others' time (ARGS=--seconds 5 --clients 20 PATTERN..., server: all of servers)"
	@echo "make soak           ten minutes of mixed work beside haproxy, every byte compared, and what is left of it: bench/soak.md (HAPROXY=, ARGS=--seconds 60)"
	@echo "make dist, deb, image   an archive, a package for Debian and Ubuntu, an OCI image: target/packages"
	@echo "make svn-experiment svn over a slow line, compressed here and there: docs/svn-experiment.md (ARGS=--rounds 1)"
	@echo "make conformance    HAProxy's regression tests (HAPROXY_TESTS=.../reg-tests VTEST=.../vtest, ARGS=--update)"
	@echo "make configs        what terse and haproxy say of the configuration files in a folder (CONFIGS=folder)"
	@echo "make tls-scan       sslyze and checks of our own against TLS as it is by default (from PyPI, outside of the repository)"
	@echo "make page           the console in Chromium: widths, accessibility, rights, changes; pictures in target/page (Playwright and axe-core from npm)"
	@echo "make real-programs  Autobahn's WebSocket cases, litmus, boto3, git and svn through terse, without it and through haproxy (ARGS=SUITE...)"
	@echo "make package-test   the packages and the archive in a clean Debian 12 with systemd, as root: install, upgrade under load, purge"
	@echo "make image-test     the image as a runtime starts it, as root: read-only, another user, a drain"
	@echo "make reloads        50 reloads under 500 connections of HTTP/2"
	@echo "make docs           writes docs/reference.md and docs/support.md from the program's tables"
	@echo "make fuzz           each fuzz target for SECONDS=10"
	@echo "make miri          interprets tests of message and deflate under Miri (a nightly toolchain)"

# What the compiler needs beside gcc.
.PHONY: system
system:
	@scripts/packages pkg-config:pkg-config /usr/include/openssl/ssl.h:libssl-dev

build: system
	$(CARGO) build --release --locked -p terse

.PHONY: lab
lab: build
	$(CARGO) build --release --locked -p terse-lab

release: system
	scripts/release

dist deb: system
	$(CARGO) build --release --locked -p terse -p terse-zlib
	packaging/build $(if $(filter dist,$@),tar,deb)

image: build
	packaging/image

demo: lab
	@TERSE="$${TERSE:-$(TARGET)/release/terse}" $(LAB) demo $(ARGS)

test: system
	@scripts/packages curl:curl nginx:nginx apache2:apache2-bin haproxy:haproxy g++:g++ \
		python3:python3 git:git svn:subversion zstd:zstd brotli:brotli dnsmasq:dnsmasq-base script:bsdutils /usr/include/zlib.h:zlib1g-dev
	$(CARGO) fmt --all --check
	scripts/file-graph
	$(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc --workspace --no-deps --locked --quiet
	@if deny=$$(scripts/cargo-deny $(TARGET)/cargo-deny); then \
		$$deny --locked check licenses bans sources && $$deny --locked --manifest-path fuzz/Cargo.toml check licenses bans sources || exit 1; \
		test ! -d "$(ADVISORIES)" || $$deny --locked --offline check advisories || exit 1; \
	fi
	$(CARGO) build --workspace --locked
	HAPROXY_ZLIB=$${HAPROXY_ZLIB:-$$(scripts/haproxy-with-zlib $(TARGET)/haproxy-with-zlib)} \
		H2SPEC=$${H2SPEC:-$$(scripts/h2spec $(TARGET)/h2spec)} env $$(scripts/grpc $(TARGET)/grpc) $(CARGO) test --workspace --locked
	@if library=$$(scripts/isal $(TARGET)/isal); then \
		LD_LIBRARY_PATH=$$library $(CARGO) test --workspace --locked --test isal --test process -- --ignored; \
	fi
	@$(TARGET)/debug/terse-lab certificate --file $(TARGET)/bench.pem
	@for file in examples/*.cfg bench/scenarios/*.cfg; do \
		echo "terse -c -f $$file"; \
		LISTEN=127.0.0.1:8080 ORIGIN=127.0.0.1:9080 WORKERS=1 SCENARIOS=bench/scenarios \
			CERTIFICATE=$(abspath $(TARGET))/bench.pem CARD=$(abspath $(TARGET))/debug/libterse_testcard.so $(TARGET)/debug/terse -c -q -f $$file || exit 1; \
	done
	$(MAKE) --no-print-directory fuzz
	@echo
	@echo "All of it holds. Left out:"
	@scripts/isal $(TARGET)/isal >/dev/null 2>&1 || echo "  ISA-L as an engine: its package, libisal2, could not be fetched"
	@scripts/cargo-deny $(TARGET)/cargo-deny >/dev/null 2>&1 || echo "  cargo-deny, which looks at licences and sources: it could not be fetched or built"
	@test -d "$(ADVISORIES)" || echo "  advisories against crates: RustSec's database is not at hand ($(ADVISORIES))"
	@test -n "$$HAPROXY_ZLIB" -o -x $(TARGET)/haproxy-with-zlib/haproxy || echo "  haproxy on libterse_z: Debian 11's, which has zlib, could not be fetched"
	@test -n "$$H2SPEC" -o -x $(TARGET)/h2spec/h2spec || echo "  h2spec: it could not be built, which takes Go"
	@test -x $(TARGET)/grpc/grpc || echo "  gRPC by Go: its program could not be built, which takes Go and its modules"
	@$(TARGET)/grpc/python/bin/python -c "import grpc" 2>/dev/null || echo "  gRPC by Python: grpcio could not be fetched"
	@test -n "$$TERSE_AUTH_REQUEST" -a -n "$$VTEST" || \
		echo "  haproxy-auth-request's own tests: neither they nor VTest are part of this repository (TERSE_AUTH_REQUEST and VTEST name them)"
	@test -n "$$TERSE_LUA_CORS" || echo "  haproxy-lua-cors' own tests: they are not part of this repository (TERSE_LUA_CORS names the folder)"
	@echo "  make bench: fourteen minutes on a machine that does nothing else"
	@echo "  make miri: some minutes of an interpreter, which takes a nightly toolchain"
	@echo "  make frontier: ten minutes on a machine that does nothing else; bodies come from npm"
	@echo "  make hostile: nine minutes on a machine that does nothing else"
	@echo "  make soak: eleven minutes; twenty seconds of it, without haproxy, are among the tests"
	@echo "  make svn-experiment: ten minutes"
	@echo "  make tls-scan: sslyze comes from PyPI (TERSE_SCAN_PYTHON names a Python that has it)"
	@echo "  make page: Playwright and axe-core come from npm"
	@echo "  make real-programs: kosoku and boto3 come from PyPI, ws from npm, gofakes3 from Go's modules"
	@echo "  make image-test: it takes root"
	@echo "  make package-test: it takes root, and a Debian 12 by debootstrap"
	@echo "  make conformance: HAProxy's tests and VTest are not part of this repository"

bench: lab
	@scripts/packages wrk:wrk h2load:nghttp2-client haproxy:haproxy nginx:nginx valgrind:valgrind strace:strace gzip:gzip genisoimage:genisoimage
	@scripts/libterse_z >/dev/null
	@test -n "$$TERSE" || $(MAKE) --no-print-directory release
	@TERSE="$${TERSE:-$(TARGET)/profiled/terse}" $(LAB) bench $(ARGS)

miri:
	@scripts/miri $(TARGET)/miri || { test $$? = 3 && echo "Left out: there is no nightly toolchain with Miri and rust-src"; }

frontier: lab
	@scripts/packages npm:npm cmake:cmake nasm:nasm autoreconf:autoconf automake:automake libtoolize:libtool
	@arguments=$$(scripts/frontier $(TARGET)/frontier) && $(LAB) frontier $$arguments $(ARGS)

releases: lab
	@scripts/packages npm:npm
	@arguments=$$(scripts/releases $(TARGET)/releases) && $(LAB) releases $$arguments $(ARGS)

hostile: lab
	@scripts/packages wrk:wrk
	@TERSE="$${TERSE:-$(TARGET)/release/terse}" $(LAB) hostile $(ARGS)

soak: lab
	@scripts/packages haproxy:haproxy
	@TERSE="$${TERSE:-$(TARGET)/release/terse}" $(LAB) soak $(ARGS)

svn-experiment: lab
	@scripts/packages apache2:apache2-bin svn:subversion openssl:openssl \
		/usr/lib/apache2/modules/mod_dav_svn.so:libapache2-mod-svn
	@TERSE="$${TERSE:-$(TARGET)/release/terse}" $(LAB) svn $(ARGS)

conformance: lab
	@test -n "$(HAPROXY_TESTS)" -a -n "$(VTEST)" || \
		{ echo "make conformance HAPROXY_TESTS=folder/reg-tests VTEST=program"; exit 1; }
	@scripts/packages socat:socat openssl:openssl curl:curl
	@TERSE="$${TERSE:-$(TARGET)/release/terse}" $(LAB) conformance --tests "$(HAPROXY_TESTS)" --vtest "$(VTEST)" $(ARGS)

configs: lab
	@test -n "$(CONFIGS)" || { echo "make configs CONFIGS=folder"; exit 1; }
	@scripts/packages haproxy:haproxy python3:python3 openssl:openssl
	@TERSE="$${TERSE:-$(TARGET)/release/terse}" $(LAB) configs --folder "$(CONFIGS)"

tls-scan: build
	@scripts/tls-scan "$${TERSE:-$(TARGET)/release/terse}"

page: build
	@scripts/page "$${TERSE:-$(TARGET)/release/terse}" $(abspath $(TARGET))/page

real-programs: build
	@scripts/real-programs "$${TERSE:-$(TARGET)/release/terse}" $(abspath $(TARGET))/real-programs $(ARGS)

package-test: dist deb
	@scripts/package-test

reloads:
	@ulimit -n 20000; TERSE_RELOADS=50 TERSE_CLIENTS=500 $(CARGO) test --locked -p terse --test wire no_request_is_lost -- --nocapture

image-test: image
	@scripts/image-test

docs: build
	$(TARGET)/release/terse -q -c -f /dev/null -dKmanual > docs/reference.md || test $$? = 2
	$(TARGET)/release/terse -q -c -f /dev/null -dKsupport > docs/support.md || test $$? = 2

fuzz: system
	@scripts/packages g++:g++
	fuzz/run.sh $(SECONDS)
