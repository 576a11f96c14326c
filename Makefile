# Millrace: everything that is done often. `make help` lists it.
GO      ?= go
FUZZTIME ?= 10s
LINT    := $(GO) tool -modfile=tools/lint/go.mod
E2E     := tools/e2e
# All packages but the end-to-end tests, which drive real programs and want the machine for themselves.
PKGS     = $(shell $(GO) list ./... | grep -v '/tools/e2e')
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.DEFAULT_GOAL := help
.PHONY: help build test unit race fuzz bench e2e fmt format vet lint check demo clip assets console clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the programs, into bin/
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/... ./tools/...

test: unit e2e ## all tests: the packages, then end to end

unit: ## the tests of the packages
	$(GO) test -shuffle=on $(PKGS)

race: ## the package tests again, under the race detector
	$(GO) test -race -shuffle=on $(PKGS)

fuzz: ## each fuzz target for FUZZTIME (10s)
	@set -e; for pkg in $(PKGS); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "== $$pkg $$f"; \
			$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

bench: ## each benchmark once, to see that it runs; bench/ has the measurements
	$(GO) test -run '^$$' -bench . -benchtime 1x $(PKGS)

# In the folder of the tests, because go test hides what a package named to it says when it passes: which
# tests were skipped, for want of which programs.
e2e: ## the real programs against ffmpeg, dig, unbound and Chromium
	$(GO) -C $(E2E) test -count=1 -timeout 20m

fmt: ## format the code
	$(LINT) gofumpt -w .

format: ## is the code formatted?
	@out=$$($(LINT) gofumpt -l .); if [ -n "$$out" ]; then \
		echo "not formatted, run 'make fmt':"; echo "$$out"; exit 1; fi

vet: ## go vet
	$(GO) vet ./...

lint: format vet ## formatting, go vet, staticcheck
	$(LINT) staticcheck ./...

check: lint race e2e bench ## what must pass before a change goes in

demo: build ## start a tree of nodes, publish a test stream, print what to open
	@bin/localcluster $(DEMO)

clip: ## make the demo's clip again (needs ffmpeg)
	tools/clip/make.sh

assets: ## fetch the player that the watch page embeds (needs npm)
	internal/watch/assets/fetch.sh

console: ## build the console's page again (needs npm)
	npm --prefix internal/console/web ci --no-fund --no-audit
	npm --prefix internal/console/web run types
	npm --prefix internal/console/web run build

clean: ## remove what was built
	rm -rf bin
