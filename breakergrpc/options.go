package breakergrpc

import "github.com/brownout-go/breaker"

// Option changes what an interceptor does.
type Option func(*config)

// WithClassify has a function tell what an error says about the server, in place of Settings.Classify of the breaker. It is not
// asked about nil, about calls whose context was cancelled, about errors with a [breaker.Mark], about refusals of another breaker,
// or about what failed on the client's side. Without it, Settings.Classify is asked where the breaker has one, else [Classify].
func WithClassify(f func(error) breaker.Outcome) Option {
	return func(c *config) { c.classify = f }
}

// WithOutcomeAtHeaders makes the outcome of a stream a success as soon as the server's headers arrive, and the stream leaves its
// place at the breaker. It is for streams that go on for long or that their callers end by cancelling them, such as
// subscriptions: what happens later on such a stream is not seen. The client notices headers when Header returns them or the first
// message is there, so call Header first on a stream that may be silent for long; a server notices when the handler sends one of
// them. A stream that ends before counts by its end. Unary calls are not affected.
func WithOutcomeAtHeaders() Option {
	return func(c *config) { c.atHeaders = true }
}

// config is what an interceptor has been told.
type config struct {
	selector  Selector
	classify  func(error) breaker.Outcome // nil: by the breaker's settings
	atHeaders bool
}

func newConfig(s Selector, opts []Option) *config {
	if s == nil {
		panic("breakergrpc: an interceptor without a Selector")
	}
	c := &config{selector: s}
	for _, o := range opts {
		o(c)
	}
	return c
}
