package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
)

// A breaker for each tenant: if the shard of one is down, the others go on. Call Get for every call, so that a full group knows
// which breakers are in use.
func ExampleGroup() {
	mock := clock.NewMock()
	tenants, err := breaker.NewGroup(func(tenant string) breaker.Settings {
		return breaker.Settings{ConsecutiveFailures: 2, Clock: mock}
	}, breaker.GroupSettings{Capacity: 1000, Idle: time.Hour, Clock: mock})
	if err != nil {
		fmt.Println(err)
		return
	}
	query := func(tenant string) error {
		b, err := tenants.Get(tenant)
		if err != nil {
			return err
		}
		return b.Execute(context.Background(), func(context.Context) error {
			if tenant == "blue" {
				return errors.New("shard is down")
			}
			return nil
		})
	}
	for _, tenant := range []string{"blue", "blue", "blue", "red"} {
		err := query(tenant)
		fmt.Println(tenant, "refused:", errors.Is(err, breaker.ErrRejected))
	}
	breakers := maps.Collect(tenants.All())
	for _, tenant := range slices.Sorted(maps.Keys(breakers)) {
		fmt.Println(tenant, "is", breakers[tenant].State())
	}
	// Output:
	// blue refused: false
	// blue refused: false
	// blue refused: true
	// red refused: false
	// blue is open
	// red is closed
}
