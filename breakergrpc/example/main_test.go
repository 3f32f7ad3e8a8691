package main

import (
	"bytes"
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStory(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	require.NoError(t, run(ctx, &out, 5*time.Millisecond))
	story := regexp.MustCompile(`(?s)server works.*  ok.*server dies.*failed: Unavailable.*closed -> open.*refused at once, ` +
		`as Unavailable.*server is back.*open -> half-open.* -> closed`)
	assert.Regexp(t, story, out.String())
}

func TestStoryThatIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, new(bytes.Buffer), time.Millisecond), context.Canceled)
}
