// SPDX-License-Identifier: Apache-2.0

// Command vuln asks govulncheck which known vulnerabilities the programs of this tree can reach, and fails for each that is not in
// accepted.txt, with a reason, or whose time there is over. It needs no internet but the Go module proxy: the database is the Go module
// golang.org/x/vulndb, whose version database.txt pins, so that runs of one tree find the same. govulncheck is a module of its own, in
// hack/vuln/govulncheck, which never becomes something that Fairlead needs.
//
// It exits 1 when something was found and 2 when it was called wrongly. Start reading at run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// Where this is in the tree, at whose root it runs.
const folder = "hack/vuln"

// packages are the programs that users run: ours, and the one of others that the image has beside them. Tests and what serves them reach more,
// such as switches of former releases; nobody runs that but on purpose.
var packages = []string{"./cmd/...", "github.com/osrg/gobgp/v4/cmd/gobgp"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("vuln", flag.ContinueOnError)
	flags.SetOutput(errOut)
	newest := flags.Bool("newest", false, "judge by the newest database, not the pinned one")
	update := flags.Bool("update", false, "pin the newest database, then judge by it")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 2
	}
	ok, err := judgeTree(ctx, *newest || *update, *update, out)
	if err != nil {
		fmt.Fprintln(errOut, "vuln: error:", err)
		return 1
	}
	if !ok {
		return 1
	}
	return 0
}

// judgeTree tells whether the tree is in order, and says on out what is not.
func judgeTree(ctx context.Context, newest, update bool, out io.Writer) (bool, error) {
	list, err := os.ReadFile(filepath.Join(folder, "accepted.txt"))
	if err != nil {
		return false, err
	}
	accepted, err := readAccepted(string(list))
	if err != nil {
		return false, err
	}
	db, err := openDatabase(ctx, filepath.Join(folder, "database.txt"), newest, update)
	if err != nil {
		return false, err
	}
	found, err := scan(ctx, ".", db.osv(), packages...)
	if err != nil {
		return false, err
	}
	now := time.Now()
	v := judge(found, accepted, now)
	for _, line := range v.wrong {
		fmt.Fprintln(out, line)
	}
	for _, line := range append(v.notes, db.old(now)...) {
		fmt.Fprintln(out, "note:", line)
	}
	fmt.Fprintf(out, "%d known vulnerabilities can be reached, %d of them accepted (%s/accepted.txt), by %s\n", len(found), v.accepted, folder, db)
	return len(v.wrong) == 0, nil
}

// joined is what a command said beside its error.
func joined(err error, said string) error {
	if said == "" {
		return err
	}
	return errors.Join(err, errors.New(said))
}
