// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"sync"
	"time"
)

// keeper saves what is announced, on a goroutine of its own: a disk that hangs must not keep a speaker from being
// demoted. Of several changes only the newest is saved.
type keeper struct {
	store Store
	clock Clock
	wake  chan struct{} // something is to be saved
	done  chan struct{} // something was
	end   chan struct{}
	ended chan struct{}

	mu    sync.Mutex
	want  *Routes // newest that is to be saved
	saved *Routes // newest that is
	err   error   // of the last attempt
}

const (
	saveGap   = 200 * time.Millisecond // between saves, so that churn does not become a stream of syncs
	saveRetry = time.Second
	saveShare = 20 // saving a large table takes no more than one part in so many of the time
	// saveMost bounds that: a disk that hung once, or a process that was stopped, looks as costly as a large table, and
	// withdrawals cannot end before what came instead of them is kept.
	saveMost = 5 * time.Second
)

// startKeeper starts a keeper to whom saved, which may be nil, is known to be in the store.
func startKeeper(store Store, clock Clock, saved *Routes) *keeper {
	k := &keeper{
		store: store, clock: clock, want: saved, saved: saved,
		wake: make(chan struct{}, 1), done: make(chan struct{}, 1),
		end: make(chan struct{}), ended: make(chan struct{}),
	}
	go k.run()
	return k
}

// keep has r saved soon, unless what is saved or about to be has the same content, which is looked at if r is not known
// to be other routes.
func (k *keeper) keep(r Routes, other bool) {
	k.mu.Lock()
	same := !other && k.want != nil && k.want.sameContent(r)
	if !same {
		k.want = &r
	}
	k.mu.Unlock()
	if !same {
		signal(k.wake)
	}
}

// kept returns the revision that is saved, whether that is all there is to save, and why the last attempt failed.
func (k *keeper) kept() (saved Revision, all bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.saved != nil {
		saved = k.saved.Revision
	}
	return saved, k.saved == k.want, k.err
}

// stop saves what is not saved yet, once, and ends.
func (k *keeper) stop() {
	close(k.end)
	<-k.ended
}

func (k *keeper) run() {
	defer close(k.ended)
	defer k.save()
	for {
		select {
		case <-k.wake:
		case <-k.end:
			return
		}
		began := k.clock.Now()
		saved := k.save()
		pause := min(max(saveGap, saveShare*(k.clock.Now()-began)), saveMost)
		if !saved {
			pause = saveRetry
			signal(k.wake)
		}
		select {
		case <-k.clock.After(pause):
		case <-k.end:
			return
		}
	}
}

// save saves the newest, and says whether all is saved.
func (k *keeper) save() bool {
	k.mu.Lock()
	want := k.want
	if want == k.saved {
		k.mu.Unlock()
		return true
	}
	k.mu.Unlock()
	err := k.store.Save(*want)
	k.mu.Lock()
	k.err = err
	if err == nil {
		k.saved = want
	}
	k.mu.Unlock()
	signal(k.done)
	return err == nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
