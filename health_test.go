package breaker_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// The health of the pages was a map by name: of two breakers with one name it showed the later, so an open circuit could look
// closed.
func TestRegression_HealthShowsBothBreakersOfOneName(t *testing.T) {
	var monitor breaker.Monitor
	left := breaker.MustNewClassic(breaker.Settings{Name: "orders", Monitor: &monitor})
	right := breaker.MustNewClassic(breaker.Settings{Name: "orders", Monitor: &monitor})
	left.Isolate()
	answer := httptest.NewRecorder()
	health(&monitor)(answer, httptest.NewRequest(http.MethodGet, "/health", nil))
	var shown struct {
		Circuits []struct {
			Name  string
			State breaker.State
		}
	}
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &shown))
	require.Len(t, shown.Circuits, 2)
	for i, b := range []*breaker.Breaker{left, right} {
		assert.Equal(t, "orders", shown.Circuits[i].Name)
		assert.Equal(t, b.State(), shown.Circuits[i].State)
	}
}
