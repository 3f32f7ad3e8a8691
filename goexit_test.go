package breaker

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// exitingBelow asks in a function so many frames further down.
func exitingBelow(frames int) bool {
	if frames == 0 {
		return exiting()
	}
	return exitingBelow(frames - 1)
}

// The stack is looked at in pieces; what matters may stand on the border between two.
func TestExitingLooksAsDeepAsItMust(t *testing.T) {
	for _, frames := range []int{0, 30, 58, 59, 60, 61, 62, 63, 64, 65, 200} {
		assert.False(t, exitingBelow(frames), "nothing ends, %d frames", frames)
		var inExit, inPanic bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			func() {
				defer func() {
					inPanic = exitingBelow(frames)
					_ = recover()
				}()
				panic("call")
			}()
			defer func() { inExit = exitingBelow(frames) }()
			runtime.Goexit()
		}()
		<-done
		assert.False(t, inPanic, "in a panic, %d frames", frames)
		assert.True(t, inExit, "in a Goexit, %d frames", frames)
	}
}
