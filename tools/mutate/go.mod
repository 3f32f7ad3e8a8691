module github.com/brownout-go/breaker/tools/mutate

go 1.26
