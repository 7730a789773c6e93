// SPDX-License-Identifier: Apache-2.0

// Package passwords finds the TCP-MD5 passwords of BGP peers, which the record only names: in Secrets, and in files of a folder.
//
// It knows where a password of a name is kept. It promises that another one counts within half a minute, that one which was read
// once counts until another one is read, so that neither a Secret or file that is gone nor an API server that is away ends a
// session, and that no password is in a log or an error. Start reading at Keeper.
package passwords

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/smallfile"
)

// secretKey is the key of a password in a Secret, as in type kubernetes.io/basic-auth.
const secretKey = "password"

// every is how often is looked for other passwords; who reads Secrets asks the API server less often than that.
const every = 2 * time.Second

// Options are where passwords may be. Log and Named are required.
type Options struct {
	// Named lists what peers call their passwords now, of those that are to be found here.
	Named func() []string
	// Secrets gives what a Secret holds; nil where there is no API server. What it says goes before a file.
	Secrets func(ctx context.Context, namespace, name string) (map[string][]byte, error)
	// Folder has a file for each password, named as peers name it; empty: there is none.
	Folder string
	// Stored gives what was announced in an earlier run, to whom, and by which passwords; nil if nothing was. Optional.
	Stored func() (*bgp.Routes, error)
	// News is called after a password became another one. Optional.
	News func()
	Log  *slog.Logger
}

// Keeper keeps the passwords that peers name. Secrets are read beside the announcer, which never waits for the API server.
type Keeper struct {
	Options
	asked chan struct{} // somebody asked for a password that is not known

	mu    sync.Mutex
	known map[string]held   // by name
	fault map[string]string // why the last look failed
}

// held is a password that counts until another one is read.
type held struct {
	password bgp.Secret
	inSecret bool // no file takes its place
}

// New makes a Keeper that looks nowhere until it is asked.
func New(o Options) *Keeper {
	return &Keeper{Options: o, asked: make(chan struct{}, 1), known: map[string]held{}, fault: map[string]string{}}
}

// Of gives the password of a peer, by what its PasswordFrom names, without waiting for anybody.
func (k *Keeper) Of(peer bgp.Peer, from string) (bgp.Secret, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.known[from]; ok {
		return known.password, true
	}
	select {
	case k.asked <- struct{}{}:
	default:
	}
	password, err := k.inFolder(from)
	if err != nil {
		var before bool
		if password, before = k.ofEarlierRun(peer); !before {
			return "", false
		}
	}
	k.known[from] = held{password: password}
	return password, true
}

// ofEarlierRun is the password by which a peer was announced to before this process started.
func (k *Keeper) ofEarlierRun(peer bgp.Peer) (bgp.Secret, bool) {
	if k.Stored == nil {
		return "", false
	}
	routes, err := k.Stored()
	if err != nil || routes == nil {
		return "", false
	}
	i := slices.IndexFunc(routes.Peers, func(q bgp.Peer) bool {
		return q.Name == peer.Name && q.Address == peer.Address && q.Password != ""
	})
	if i < 0 {
		return "", false
	}
	return routes.Peers[i].Password, true
}

// Run looks for passwords once somebody has asked for one, until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-k.asked:
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if k.look(ctx) && k.News != nil {
			k.News()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.asked:
		case <-tick.C:
		}
	}
}

// look reads the passwords that peers name. It tells whether one is another one than before.
func (k *Keeper) look(ctx context.Context) (changed bool) {
	named := map[string]bool{}
	for _, from := range k.Named() {
		named[from] = true
	}
	for _, from := range slices.Sorted(maps.Keys(named)) {
		found, err := k.find(ctx, from)
		if ctx.Err() != nil {
			return changed
		}
		changed = k.note(from, found, err) || changed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.known, func(from string, _ held) bool { return !named[from] })
	maps.DeleteFunc(k.fault, func(from, _ string) bool { return !named[from] })
	return changed
}

func (k *Keeper) find(ctx context.Context, from string) (held, error) {
	namespace, name, ok := world.ParsePasswordSecret(from)
	if !ok || k.Secrets == nil {
		password, err := k.inFolder(from)
		return held{password: password}, err
	}
	data, err := k.Secrets(ctx, namespace, name)
	if err == nil {
		var password bgp.Secret
		if password, err = fit(from+": key "+secretKey, strings.TrimRight(string(data[secretKey]), "\r\n")); err == nil {
			return held{password, true}, nil
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known[from].inSecret {
		return held{}, err
	}
	if password, failed := k.inFolder(from); failed == nil {
		return held{password: password}, nil
	}
	return held{}, err
}

// inFolder reads a file of the folder, which a name never leads out of.
func (k *Keeper) inFolder(from string) (bgp.Secret, error) {
	if k.Folder == "" {
		return "", fmt.Errorf("%s: no folder has it; name one as bgp.passwordDir, and put the password into its file %s", from, from)
	}
	if !filepath.IsLocal(from) {
		return "", fmt.Errorf("password %q: leads out of bgp.passwordDir; name it otherwise", from)
	}
	path := filepath.Join(k.Folder, from)
	text, err := smallfile.Read(path, smallfile.Most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("password file %s: does not exist; put the password there", path)
	case err != nil:
		return "", fmt.Errorf("password file: %w; let this process read it", err)
	}
	return fit("password file "+path, strings.TrimSpace(string(text)))
}

// fit refuses what cannot sign a session: with an empty password it would be open to anybody.
func fit(where, text string) (bgp.Secret, error) {
	switch n := len(text); {
	case n == 0:
		return "", errors.New(where + ": is missing or empty; put the password there")
	case n > bgp.MaxPasswordBytes:
		return "", fmt.Errorf("%s: has %d bytes; TCP MD5 takes up to %d", where, n, bgp.MaxPasswordBytes)
	}
	return bgp.Secret(text), nil
}

// note takes in the outcome of a look, and says so where it is another one than before.
func (k *Keeper) note(from string, found held, err error) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, known := k.known[from]
	if err != nil {
		if k.fault[from] != err.Error() {
			k.Log.Error("password of a BGP peer not read", "from", from, "err", err, "goes_on_with_former", known)
		}
		k.fault[from] = err.Error()
		return false
	}
	delete(k.fault, from)
	k.known[from] = found
	return !known || before.password != found.password
}
