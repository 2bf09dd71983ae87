// Package members is the frame of a program that holds members of consumer groups. Commands and events: members/wire.py.
package members

import (
	"bufio"
	"encoding/json"
	"os"
	"sort"
	"sync"
	"time"
)

// Times of every member.
const (
	Heartbeat   = 300 * time.Millisecond
	CommitEvery = 300 * time.Millisecond
	FetchWait   = 200 * time.Millisecond
)

// Join says what a member is to be.
type Join struct {
	Op        string  `json:"op"`
	Member    string  `json:"member"`
	Bootstrap string  `json:"bootstrap"`
	Group     string  `json:"group"`
	Topic     string  `json:"topic"`
	Assignor  string  `json:"assignor"`
	Instance  *string `json:"instance"`
	SessionMs int     `json:"session_ms"`
	Isolation string  `json:"isolation"`
}

// Session is the member's session timeout.
func (j Join) Session() time.Duration {
	return time.Duration(j.SessionMs) * time.Millisecond
}

// Event is one line of output.
type Event struct {
	Event      string            `json:"event"`
	Member     string            `json:"member"`
	Time       int64             `json:"time"`
	Partitions []int32           `json:"partitions"`
	Generation int32             `json:"generation"`
	Offsets    map[int32][]int64 `json:"offsets,omitempty"`
	Error      string            `json:"error,omitempty"`
}

var output sync.Mutex

func (e Event) print() {
	output.Lock()
	defer output.Unlock()
	e.Time = time.Now().UnixMilli()
	if err := json.NewEncoder(os.Stdout).Encode(e); err != nil {
		os.Exit(1)
	}
}

// Report prints the events of one member.
type Report struct {
	Member string
	lock   sync.Mutex
	owned  map[int32]bool
}

// Gained adds partitions to those which the member owns.
func (r *Report) Gained(partitions []int32, generation int32) {
	r.change(partitions, true, generation)
}

// GaveUp takes partitions away.
func (r *Report) GaveUp(partitions []int32) {
	r.change(partitions, false, -1)
}

func (r *Report) change(partitions []int32, owned bool, generation int32) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.owned == nil {
		r.owned = map[int32]bool{}
	}
	for _, partition := range partitions {
		if owned {
			r.owned[partition] = true
		} else {
			delete(r.owned, partition)
		}
	}
	all := []int32{}
	for partition := range r.owned {
		all = append(all, partition)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	Event{Event: "owned", Member: r.Member, Partitions: all, Generation: generation}.print()
}

// Records prints offsets that were read.
func (r *Report) Records(offsets map[int32][]int64) {
	if len(offsets) > 0 {
		Event{Event: "records", Member: r.Member, Offsets: offsets}.print()
	}
}

// Left says that the member ended cleanly.
func (r *Report) Left() {
	Event{Event: "left", Member: r.Member}.print()
}

// Failed prints an error that the client gave to its user.
func (r *Report) Failed(err error) {
	Event{Event: "failed", Member: r.Member, Error: err.Error()}.print()
}

// Serve starts members by run, whose channel is closed when the member is to leave.
func Serve(run func(Join, *Report, <-chan struct{})) {
	leaving := map[string]chan struct{}{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var join Join
		if err := json.Unmarshal(lines.Bytes(), &join); err != nil {
			panic(err)
		}
		if join.Op == "join" {
			leaving[join.Member] = make(chan struct{})
			go run(join, &Report{Member: join.Member}, leaving[join.Member])
		} else {
			close(leaving[join.Member])
			delete(leaving, join.Member)
		}
	}
	os.Exit(0)
}
