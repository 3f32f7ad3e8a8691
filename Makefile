.PHONY: ci test race bench fuzz soak mutants

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

# The breaker against its model, for as long as you like; CI gives a few seconds to each of the fuzz targets.
FUZZ = FuzzModel
FUZZIN = ./internal/model
FUZZTIME = 10m
fuzz:
	go test -run '^$$' -fuzz '^$(FUZZ)$$' -fuzzminimizetime 20x -fuzztime $(FUZZTIME) $(FUZZIN)

# A breaker against a real server that fails in every way.
soak:
	go run ./soak -soak 10m

# Small faults written into the root package, and which of them the tests do not notice. It takes an hour on two cores. Left
# out are the tests that are slow, that only repeat what others tell, or that look at the sources.
mutants: export GOFLAGS = -short -count=1 -vet=off "-skip=Stress|NothingIsLeft|ForgetsTheDead|Argument|TailQuantileOn|Layout|Pure|Guarantees"
mutants:
	go run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash .
