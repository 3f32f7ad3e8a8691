package protect

import (
	"bytes"
	"fmt"
	"strings"
)

// progressLines reads the output of the test: a line "scenario: entry" for each cell that has been measured. The rest is kept
// for the case that it fails.
type progressLines struct {
	tell  func(scenario, entry string)
	line  bytes.Buffer
	other bytes.Buffer
}

func (l *progressLines) Write(p []byte) (int, error) {
	for _, b := range p {
		if b != '\n' {
			l.line.WriteByte(b)
			continue
		}
		l.end(l.line.String())
		l.line.Reset()
	}
	return len(p), nil
}

func (l *progressLines) end(line string) {
	if scenario, entry, found := strings.Cut(line, ": "); found && !strings.HasPrefix(line, " ") {
		l.tell(scenario, entry)
		return
	}
	fmt.Fprintln(&l.other, line)
}
