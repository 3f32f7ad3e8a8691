package markdown

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTable(t *testing.T) {
	want := "| entry | opens |\n| --- | ---: |\n| ours | 1 |\n| peer | 2 |\n"
	assert.Equal(t, want, Table(1, []string{"entry", "opens"}, [][]string{{"ours", "1"}, {"peer", "2"}}))
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		assert.Equal(t, want, Grouped(n))
	}
}
