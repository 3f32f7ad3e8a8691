// Package ledger sums what the breakers of a monitor show, by name: what a metrics exporter needs and a monitor does not keep.
//
// Breakers come and go, when a group drops one and makes it again, and several may share a name. A counter of a name must not go
// back for that, so the ledger keeps what it has seen of each name, for a bounded number of names.
//
// Modules that export metrics each have this package, the same to the byte, so that none depends on another.
package ledger

import (
	"context"
	"slices"
	"sync"
	"weak"

	"github.com/brownout-go/breaker"
)

// Other is the name of everything that the bound on names leaves without an account of its own. A breaker of that name shares it.
const Other = "other"

// Ledger keeps an account for each name. It is safe for concurrent use, and runs no code of the user under its lock.
type Ledger struct {
	monitor *breaker.Monitor
	limit   int
	cancel  func()

	mu       sync.Mutex // protects following fields
	reading  uint64     // of the reading that was begun last
	entered  uint64     // of the reading whose figures are in the accounts
	accounts map[string]*account
	full     bool                                             // no account can be taken out before the next reading
	seen     map[weak.Pointer[breaker.Breaker]]breaker.Totals // at the reading entered last
	rows     []Row                                            // of that reading
}

// account is what is kept of a name.
type account struct {
	name   string
	alive  uint64 // the last reading that found a breaker, or found the account new
	totals breaker.Totals
	moves  map[Move]uint64
	gauges Gauges // of the reading entered last
}

// sight is one breaker as a reading finds it.
type sight struct {
	breaker  weak.Pointer[breaker.Breaker]
	label    string
	snapshot breaker.Snapshot
}

// New returns the ledger of a monitor, which counts changes of state from now on. At most limit names, at least 1, have an account
// of their own. The monitor keeps the ledger alive until Close.
func New(m *breaker.Monitor, limit int) *Ledger {
	l := &Ledger{
		monitor: m, limit: limit,
		accounts: map[string]*account{},
		seen:     map[weak.Pointer[breaker.Breaker]]breaker.Totals{},
	}
	l.cancel = m.Subscribe(l.changed)
	return l
}

// Close ends the counting of changes. It may be called again.
func (l *Ledger) Close() { l.cancel() }

// changed counts one change of state.
func (l *Ledger) changed(_ context.Context, c breaker.StateChange) {
	label := Label(c.Name)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accountLocked(label).moves[Move{c.From, c.To, c.Reason}]++
}

// Read reads every breaker and returns a row for each name, in order of name. Of two readings at once, the later one's figures
// are entered and both may return them, so that no counter goes back from one to the next. The rows are shared: read-only.
func (l *Ledger) Read() []Row {
	l.mu.Lock()
	l.reading++
	reading := l.reading
	l.mu.Unlock()
	sights := l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	if reading > l.entered {
		l.enterLocked(reading, sights)
	}
	return l.rows
}

// look takes a snapshot of each breaker.
func (l *Ledger) look() []sight {
	breakers := l.monitor.Breakers()
	sights := make([]sight, 0, len(breakers))
	for _, b := range breakers {
		s := b.Snapshot()
		sights = append(sights, sight{weak.Make(b), Label(s.Name), s})
	}
	return sights
}

// enterLocked enters the figures of a reading. Names that have an account are marked as alive before a new one takes the place of
// one that is not.
func (l *Ledger) enterLocked(reading uint64, sights []sight) {
	l.entered, l.full = reading, false
	for _, a := range l.accounts {
		a.gauges = Gauges{}
	}
	for _, s := range sights {
		if a := l.accounts[s.label]; a != nil {
			a.alive = reading
		}
	}
	seen := make(map[weak.Pointer[breaker.Breaker]]breaker.Totals, len(sights))
	for _, s := range sights {
		a := l.accountLocked(s.label)
		a.gauges.add(s.snapshot)
		addSince(&a.totals, l.seen[s.breaker], s.snapshot.Totals)
		seen[s.breaker] = s.snapshot.Totals
	}
	l.seen = seen
	l.rows = l.rowsLocked()
}

// accountLocked returns the account of a label. A new one takes, when there is no place left, that of the name whose breakers
// have been gone for longest; when there is none, the label counts as [Other].
func (l *Ledger) accountLocked(label string) *account {
	if a := l.accounts[label]; a != nil {
		return a
	}
	if label != Other && l.ownLocked() >= l.limit && !l.evictLocked() {
		return l.accountLocked(Other)
	}
	a := &account{name: label, alive: l.entered, moves: map[Move]uint64{}}
	l.accounts[label] = a
	return a
}

// ownLocked returns the number of accounts that the limit is for.
func (l *Ledger) ownLocked() int {
	if l.accounts[Other] != nil {
		return len(l.accounts) - 1
	}
	return len(l.accounts)
}

// evictLocked takes out the account that has been without a breaker for longest, and reports whether there was one.
func (l *Ledger) evictLocked() bool {
	if l.full {
		return false
	}
	var oldest *account
	for _, a := range l.accounts {
		if a.name != Other && a.alive < l.entered && (oldest == nil || a.before(oldest)) {
			oldest = a
		}
	}
	l.full = oldest == nil
	if !l.full {
		delete(l.accounts, oldest.name)
	}
	return !l.full
}

func (a *account) before(o *account) bool {
	return a.alive < o.alive || a.alive == o.alive && a.name < o.name
}

func (l *Ledger) rowsLocked() []Row {
	rows := make([]Row, 0, len(l.accounts))
	for _, a := range l.accounts {
		rows = append(rows, Row{Name: a.name, Gauges: a.gauges, Totals: a.totals, Moves: a.sortedMoves()})
	}
	slices.SortFunc(rows, compareRows)
	return rows
}
