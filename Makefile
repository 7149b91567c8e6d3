# SPDX-License-Identifier: MIT OR Apache-2.0
# The front door. CMake does the work; `make help` says what there is.
SHELL        := /bin/bash
.SHELLFLAGS  := -euo pipefail -c
.DEFAULT_GOAL := build
PREFIX       ?= /usr/local
FUZZ_SECONDS ?= 60
export FUZZ_SECONDS

.PHONY: build run check bench asan tsan fuzz lint lint-deep fmt fmt-check install \
        uninstall dist deb wheel clean help check-long verify-math verify-ops

build: ## install what is missing and build into build/
	@scripts/deps.sh build
	@scripts/build.sh release

run: ## build library and command, then run kernels: the Mandelbrot set, on every device there is
	@scripts/deps.sh build
	@scripts/build.sh release vyre_cli
	@scripts/demo.sh build

check: ## install what is missing, build, run all tests
	@scripts/deps.sh check
	@scripts/build.sh release || { echo '0 passed, 1 failed'; exit 1; }
	@scripts/test.sh build

check-long: check ## after the tests: PROGRAMS (10000) random programs, in all WAYS (lowered c cpu vulkan conform flow); RESUME=1 goes on
	@scripts/check_long.sh build

asan tsan: ## all tests under that sanitizer
	@scripts/deps.sh check sanitize
	@scripts/build.sh $@ || { echo '0 passed, 1 failed'; exit 1; }
	@scripts/test.sh build/$@

fuzz: ## run each fuzz target for FUZZ_SECONDS (default 60)
	@scripts/deps.sh fuzz
	@scripts/build.sh fuzz tests/all
	@scripts/fuzz.sh build/fuzz

verify-math verify-ops: build ## functions over all arguments, operations; ARGS=--summary
	@scripts/deps.sh verify
	@scripts/verify.sh $(@:verify-%=%) $(ARGS)

bench: build ## run the benchmarks, print a table, write build/bench.json
	@scripts/bench.sh build

lint lint-deep: ## clang-tidy and the house rules; deep: with all states of the analyzer, far longer
	@scripts/deps.sh lint
	@scripts/build.sh release
	@scripts/lint.sh build $(if $(findstring deep,$@),--deep)

fmt fmt-check: ## format the sources; or check that they are formatted
	@scripts/deps.sh fmt
	@scripts/fmt.sh $@

install: ## build what is installed, and install it below PREFIX (default /usr/local); DESTDIR is kept
	@scripts/deps.sh build
	@scripts/build.sh release vyre vyre_cli manual_pages
	@cmake --install build --prefix "$(PREFIX)"

uninstall: ## remove what `make install` installed last; DESTDIR is kept
	@test -f build/install_manifest.txt || { echo 'nothing to remove: build/install_manifest.txt is not there'; exit 1; }
	@sed 's|^|$(DESTDIR)|' build/install_manifest.txt | xargs -r -d '\n' rm -vf

dist: ## write the source tarball build/vyre-VERSION.tar.gz
	@scripts/dist.sh

deb: ## build a Debian package in build/ and check it with lintian
	@scripts/deps.sh deb
	@scripts/deb.sh

wheel: ## build a wheel of the Python package in build/wheels, check it, and test it in an empty environment
	@scripts/deps.sh build wheel
	@scripts/wheel.sh

clean: ## remove build/
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z][a-z -]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16
