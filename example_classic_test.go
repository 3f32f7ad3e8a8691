package breaker_test

import (
	"fmt"

	"github.com/brownout-go/breaker"
)

// The fixed rules, for who wants figures that can be reckoned by hand.
func ExampleClassic() {
	s := breaker.Classic() // every number written out: change what you like
	s.Name = "inventory"
	b := breaker.MustNew(s)
	fmt.Println(b.Settings().BreakDuration, b.Settings().Recovery.Off)
	// Output: 15s true
}
