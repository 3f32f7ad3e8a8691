package breaker

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// causeBelow asks in a function so many frames further down.
func causeBelow(frames int) cause {
	if frames == 0 {
		return unwinding()
	}
	return causeBelow(frames - 1)
}

// The stack is looked at in pieces; what matters may stand on the border between two.
func TestUnwindingLooksAsDeepAsItMust(t *testing.T) {
	for _, frames := range []int{0, 30, 58, 59, 60, 61, 62, 63, 64, 65, 200} {
		assert.Equal(t, byPanic, causeBelow(frames), "nothing ends, %d frames", frames)
		var inExit, inPanic cause
		done := make(chan struct{})
		go func() {
			defer close(done)
			func() {
				defer func() {
					inPanic = causeBelow(frames)
					_ = recover()
				}()
				panic("call")
			}()
			defer func() { inExit = causeBelow(frames) }()
			runtime.Goexit()
		}()
		<-done
		assert.Equal(t, byPanic, inPanic, "in a panic, %d frames", frames)
		assert.Equal(t, byGoexit, inExit, "in a Goexit, %d frames", frames)
	}
}
