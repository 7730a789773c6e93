// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/dataplane/bgp/testswitch"
)

// Options are the flags of `fairlead dev`.
type Options struct {
	Members   int           // 1 to 9
	Manifests string        // folder
	Data      string        // folder, kept; empty: a new one, removed at the end
	Once      bool          // wait until all agrees, print, end
	Timeout   time.Duration // for Once
	JSON      bool
	Version   string
	Stdout    io.Writer
	Stderr    io.Writer
	Level     slog.Level
	Terminal  bool // Stdout is one: the table is drawn over
	// ContextLink is where the command line looks for a group when nobody names one. It is linked to this one
	// while it runs, unless something is there that no dev process left behind, or another one runs that has it.
	ContextLink string
	linked      bool   // it is
	other       string // the data folder of the one that has it
}

// settledFor is how long a picture must stay the same and agree before --once believes it.
const settledFor = 300 * time.Millisecond

// drawEvery is how often a picture is taken.
const drawEvery = 100 * time.Millisecond

func (o *Options) validate() error {
	if o.Members < 1 || o.Members > 9 {
		return fmt.Errorf("--members %d: must be from 1 to 9; three are the norm", o.Members)
	}
	info, err := os.Stat(o.Manifests)
	if err != nil || !info.IsDir() {
		return fmt.Errorf("--manifests %s: no such folder; examples/quickstart is one to begin with", o.Manifests)
	}
	if o.Once && o.Timeout <= 0 {
		return fmt.Errorf("--timeout %s: must be more than 0", o.Timeout)
	}
	return nil
}

// Run runs the whole until ctx ends, or with Once until all agrees. Errors: what could not be started, the
// failure of a member, and with Once that all did not agree in time, and why.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	// Who reads what is printed may go first. The write fails then, and all ends in order: folders with keys go. Without this the process
	// would be gone at once. To be told of the signal instead would be wrong: connections that end raise it, too.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	dir, remove, err := folder(o.Data)
	if err != nil {
		return err
	}
	defer remove()
	log := slog.New(slog.NewTextHandler(o.Stderr, &slog.HandlerOptions{Level: o.Level}))
	sw, err := testswitch.Start(testswitch.Config{})
	if err != nil {
		return fmt.Errorf("start the built-in switch: %w", err)
	}
	defer sw.Close()
	peers, err := peerManifest(dir, sw)
	if err != nil {
		return fmt.Errorf("tell the group of the built-in switch: %w", err)
	}
	manifests, err := filepath.Abs(o.Manifests)
	if err != nil {
		return err
	}
	g, err := newGroup(dir, o.Members, []string{manifests, peers}, o.Version, sw, log)
	if err != nil {
		return err
	}
	contextFile, err := writeContext(dir, g)
	if err != nil {
		return err
	}
	return o.run(ctx, dir, contextFile, g, sw, log)
}

func (o *Options) run(ctx context.Context, dir, contextFile string, g *group, sw *testswitch.Switch, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts, ctx := errgroup.WithContext(ctx)
	defer func() {
		cancel()
		_ = parts.Wait() // whatever ended first is what is told
		g.stop()
	}()
	for _, c := range g.configs {
		if err := g.start(ctx, c.Name); err != nil {
			return err
		}
	}
	n := newNodes(dir, g, log)
	parts.Go(func() error { return n.run(ctx) })
	parts.Go(func() error { return control(ctx, dir, g) })
	if o.Once {
		return o.once(ctx, g, sw)
	}
	if o.other = otherAt(o.ContextLink, contextFile); o.other == "" {
		var unlink func()
		unlink, o.linked = link(contextFile, o.ContextLink)
		defer unlink()
	}
	return o.show(ctx, contextFile, g, sw)
}

// otherAt is the data folder of another dev process that runs, to which a link leads; empty if there is none.
func otherAt(at, contextFile string) string {
	target, err := os.Readlink(at)
	if err != nil || target == contextFile {
		return ""
	}
	if dir := DataOf(at); runs(dir) {
		return dir
	}
	return ""
}

// link makes the command line find this group by itself; it never replaces a file that is not such a link.
func link(contextFile, at string) (unlink func(), linked bool) {
	if at == "" || os.MkdirAll(filepath.Dir(at), 0o700) != nil {
		return func() {}, false
	}
	if _, err := os.Readlink(at); err == nil {
		_ = os.Remove(at) // a link is ours, or of one that ended
	}
	if os.Symlink(contextFile, at) != nil {
		return func() {}, false
	}
	return func() {
		if target, err := os.Readlink(at); err == nil && target == contextFile {
			_ = os.Remove(at)
		}
	}, true
}

// folder gives the data folder and what removes it at the end.
func folder(named string) (dir string, remove func(), err error) {
	if named != "" {
		if dir, err = filepath.Abs(named); err != nil { // files in it name each other, by whole paths
			return "", nil, err
		}
		return dir, func() {}, os.MkdirAll(dir, 0o700)
	}
	dir, err = os.MkdirTemp("", "fairlead-dev-")
	if err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// once waits until all agrees and stays so, prints, and ends.
func (o *Options) once(ctx context.Context, g *group, sw *testswitch.Switch) error {
	deadline := time.NewTimer(o.Timeout)
	defer deadline.Stop()
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	var before Picture
	var since time.Time
	why := errors.New("nothing was looked at yet")
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-g.failed:
			return err
		case <-deadline.C:
			err := problemsIn(before)
			if err == nil {
				err = fmt.Errorf("not converged within %s: %w; --timeout gives it longer", o.Timeout, why)
			}
			return errors.Join(o.print(before), err)
		case now := <-tick.C:
			picture := take(g, sw)
			if why = picture.agrees(); why != nil || !reflect.DeepEqual(picture, before) {
				before, since = picture, now
				continue
			}
			if now.Sub(since) >= settledFor {
				return errors.Join(o.print(picture), problemsIn(picture))
			}
			why = errors.New("things were still changing")
		}
	}
}

// problemsIn is an error if a manifest could not be used, in one line.
func problemsIn(p Picture) error {
	switch n := len(p.Problems); n {
	case 0:
		return nil
	case 1:
		return errors.New(p.Problems[0])
	default:
		return fmt.Errorf("%s; and %d more problems, as -o table shows", p.Problems[0], n-1)
	}
}

func (o *Options) print(p Picture) error {
	if !o.JSON {
		return draw(o.Stdout, p)
	}
	encoder := json.NewEncoder(o.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(p)
}

// show draws the picture whenever it changes, until ctx ends.
func (o *Options) show(ctx context.Context, contextFile string, g *group, sw *testswitch.Switch) error {
	o.hints(o.Stderr, contextFile)
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	var before string
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-g.failed:
			_, _ = fmt.Fprintln(o.Stderr, err) // the others go on, as they would on machines of their own
		case <-tick.C:
			picture := take(g, sw)
			now := picture.outline()
			if now == before {
				continue
			}
			before = now
			if o.Terminal && !o.JSON {
				_, _ = fmt.Fprint(o.Stdout, "\x1b[H\x1b[2J")
			}
			if err := o.print(picture); err != nil {
				return err
			}
			if o.Terminal && !o.JSON {
				o.hints(o.Stdout, contextFile)
			}
		}
	}
}

// outline is the picture without what changes all the time in a healthy group.
func (p Picture) outline() string {
	p.Members = slices.Clone(p.Members)
	for i := range p.Members {
		p.Members[i].Applied, p.Members[i].Digest = 0, ""
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// hints says what to try.
func (o *Options) hints(w io.Writer, contextFile string) {
	export, other := "", ""
	if !o.linked {
		export = "  export FAIRLEAD_CONTEXT=" + contextFile + "\n"
	}
	if o.other != "" {
		other = " Without the export commands go to the `fairlead dev` that runs over " + o.other + "."
	}
	_, _ = fmt.Fprintf(w, `
Try in another terminal:%s
%s  bin/fairlead get routes
  bin/fairlead raft status
  bin/fairlead describe service NAMESPACE/NAME
  bin/fairlead dev kill 1          and then: bin/fairlead dev start 1
Edit a manifest in %s, or add one, and watch. Ctrl-C ends it.
`, other, export, o.Manifests)
}

// writeContext makes an operator's certificate and the file by which the command line finds this group.
func writeContext(dir string, g *group) (string, error) {
	files, err := issue(dir, pki.Operator, "dev")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "context.yaml")
	text := fmt.Sprintf("servers: [%q]\nca: %q\ncert: %q\nkey: %q\n", strings.Join(g.servers(), `", "`), files.CA, files.Cert, files.Key)
	text = strings.ReplaceAll(text, `\"`, `"`)
	return path, os.WriteFile(path, []byte(text), 0o600)
}
