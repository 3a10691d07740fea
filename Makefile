# The daily commands; `make help` lists them. Everything happens inside this folder, without root.
PYTHON ?= python3
VENV   := $(CURDIR)/.venv
JOBS   ?= $(shell nproc)
TARGETS ?= programs
export PATH := $(VENV)/bin:$(PATH)

.DEFAULT_GOAL := build
.PHONY: help setup setup-dev build test demo format tidy clean dist

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

setup:  ## fetch pinned tools, libraries and launchers into .venv, .deps and .launchers (quick when done)
	@$(PYTHON) tools/setup.py

setup-dev:  ## as setup, with clang-tidy
	@$(PYTHON) tools/setup.py --dev

build: setup  ## optimised build; programs land in build/bin (TARGETS=all: the tests too)
	@mkdir -p build
	@cmake --preset release > build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@cmake --build --preset release --target $(TARGETS) -j $(JOBS)

test: setup-dev  ## everything CI checks: format, layers, classes, clang-tidy on changes, asan, tsan, release, hosts, python
	@python tools/run_tests.py

demo: TARGETS = brant jacobi3d
demo: build  ## a 3D heat solver on two processes: a check, then a comparison with staging through the host
	build/bin/brant run -n 2 -- build/bin/jacobi3d --size 70 52 46 --iterations 20 --warmup 0 --overlap --check
	build/bin/brant run -n 2 -- build/bin/jacobi3d --size 192 192 384 --iterations 50 --compare

format: setup  ## format C++ and Python in place
	@python tools/run_tests.py --apply-format

tidy: setup-dev  ## clang-tidy over all our sources, for hours; `tools/run_tests.py tidy-changes` asks it about changed lines only
	@python tools/run_tests.py tidy

dist: build  ## a relocatable folder and tar.xz in build/dist, for machines where nothing can be installed
	@python tools/bundle.py

clean:  ## remove what was built (keeps .venv, .deps and .launchers)
	rm -rf build
