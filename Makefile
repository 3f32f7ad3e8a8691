.PHONY: ci test race bench fuzz

# Exactly what CI runs.
ci:
	.ci/run

test:
	go test ./...

race:
	go test -race ./...

# The costs the library promises, as ratios against gobreaker and against what no breaker can avoid.
bench:
	cd benchmarks && go run ./speed

fuzz:
	go test -run '^$$' -fuzz FuzzModel -fuzztime 10m ./internal/model
