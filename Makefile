# Concord's two commands, each of which does all of its set-up on a Debian 12 machine with Rust:
#
#   make demo   compares a kernel with locks and the same with transactions on real workloads, and writes a report
#   make test   runs every test that fits into 20 minutes
#
# Set-up installs Debian packages with apt, through sudo where not root, and builds guests once, into ~/.cache/concord.

CARGO ?= cargo
CARGO_FLAGS ?= --locked
TARGET := $(or $(CARGO_TARGET_DIR),target)
CONCORD := $(TARGET)/release/concord
SUDO := $(shell test "$$(id -u)" -eq 0 || echo sudo)

# What the demonstration compares, and where its runs and reports go.
DEMO ?= experiments/comparisons/demo.toml
DEMO_OUTPUT ?= results/demo

help:
	@sed -n '/^\#/!q; s/^\# \{0,1\}//p' Makefile
	@echo 'Also: make build guests test-long bench fmt lint clean'

# What is needed before the command that knows the rest can be compiled.
compilers:
	@for program in cc cmake make; do \
		command -v $$program >/dev/null || missing=yes; \
	done; \
	if [ -n "$$missing" ]; then \
		$(SUDO) apt-get update && \
		$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends gcc libc6-dev cmake make; \
	fi
	@command -v $(CARGO) >/dev/null || { echo 'cargo is missing: install Rust 1.95 or later (rustup.rs)' >&2; exit 1; }

build: compilers
	$(CARGO) build --release $(CARGO_FLAGS) --package concord

setup: build
	$(CONCORD) doctor --install

guests: setup
	$(CONCORD) build

demo: setup
	$(CONCORD) build kernel rootfs benchmarks
	$(CONCORD) compare --experiment $(DEMO) --output $(DEMO_OUTPUT)

test: guests
	$(MAKE) --directory=tm check
	CARGO=$(CARGO) .ci/tests --workspace --no-fail-fast $(CARGO_FLAGS)
	$(CARGO) test --quiet --package concord-tm --doc $(CARGO_FLAGS)
	$(CARGO) test --quiet --package concord-tm --features tl2 --tests $(CARGO_FLAGS)
	for heat in 0 1; do \
		CONCORD_TEST_HEAT=$$heat $(CARGO) test --quiet --package concord-machine $(CARGO_FLAGS) || exit; \
	done

test-long: guests
	$(MAKE) --directory=tm check check-tsan check-broken
	CONCORD_TEST_LONG=1 CARGO=$(CARGO) .ci/tests --workspace --no-fail-fast $(CARGO_FLAGS) -- --include-ignored
	for heat in 0 1 2; do \
		CONCORD_TEST_HEAT=$$heat $(CARGO) test --quiet --package concord-machine $(CARGO_FLAGS) || exit; \
	done
	CONCORD_TEST_EVERY_KEY=1 $(CARGO) test --quiet --package concord-lab --test guests $(CARGO_FLAGS)
	CONCORD_DIFFERENTIAL_PROGRAMS=4000 $(CARGO) test --package concord-machine $(CARGO_FLAGS) executors

bench: guests
	$(MAKE) --directory=workloads/bare
	bench/run

fmt:
	$(CARGO) fmt --all

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets $(CARGO_FLAGS) -- --deny warnings

clean:
	$(CARGO) clean
	$(MAKE) --directory=workloads/bare clean

.PHONY: help compilers build setup guests demo test test-long bench fmt lint clean
