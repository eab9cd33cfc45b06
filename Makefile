# Concord's two commands, each of which does all of its set-up on a Debian 12 machine with Rust:
#
#   make demo   boots our kernel on 8 harts and runs a file-system workload with the caches modelled
#   make test   runs every test that fits into 20 minutes
#
# Set-up installs Debian packages with apt, through sudo where not root, and builds guests once, into ~/.cache/concord.

CARGO ?= cargo
CARGO_FLAGS ?= --locked
TARGET := $(or $(CARGO_TARGET_DIR),target)
CONCORD := $(TARGET)/release/concord
SUDO := $(shell test "$$(id -u)" -eq 0 || echo sudo)

# The demonstration's machine and its amount of work: files that a worker writes in each of its directories.
DEMO_HARTS ?= 8
DEMO_SIZE ?= 8
DEMO_RESULT ?= results/demo.json

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
	@command -v $(CARGO) >/dev/null || { echo 'cargo is missing: install Rust 1.88 or later (rustup.rs)' >&2; exit 1; }

build: compilers
	$(CARGO) build --release $(CARGO_FLAGS) --package concord

setup: build
	$(CONCORD) doctor --install

guests: setup
	$(CONCORD) build

demo: setup
	$(CONCORD) build kernel rootfs
	@mkdir -p $(dir $(DEMO_RESULT))
	$(CONCORD) boot --harts $(DEMO_HARTS) \
		--kernel "$$($(CONCORD) build --path kernel Image)" \
		--symbols "$$($(CONCORD) build --path kernel vmlinux)" \
		--disk "$$($(CONCORD) build --path rootfs rootfs),overlay" \
		--append 'console=ttyS0 root=/dev/vda concord.run=files concord.size=$(DEMO_SIZE) concord.gear=timed' \
		--result $(DEMO_RESULT)

test: guests
	$(CARGO) test --workspace --no-fail-fast $(CARGO_FLAGS)

test-long: guests
	CONCORD_TEST_LONG=1 $(CARGO) test --workspace --no-fail-fast $(CARGO_FLAGS) -- --include-ignored

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
