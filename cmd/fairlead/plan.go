// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// planWithin is how long an answer may take: a large record is planned several times.
const planWithin = 35 * time.Second

func newPlan(c *cli) *cobra.Command {
	var from, inPlaceOf string
	cmd := &cobra.Command{
		Use:   "plan -f FILE|DIR",
		Short: "Show what would change if manifests were applied; nothing is changed",
		Long: "Show what would change if manifests were applied: per Service, address, next hop, node, pool, peer and outside load balancer. The leader plans it with\n" +
			"what its sources show and the manifests on top, in a copy of the record; nothing is changed.\n\n" +
			"With --in-place-of SOURCE they stand for all of a source that is a folder: what is not among them would go, as far as the guards\n" +
			"let it. Of outside load balancers the calls are told that their drivers would get. 512 KiB of manifests are taken at most.",
		Example: "  fairlead plan -f service.yaml\n" +
			"  fairlead plan -f new/ --in-place-of manifests:/etc/fairlead/manifests -o json",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" {
				return usagef("want -f FILE|DIR")
			}
			req := &fairleadv1.PlanRequest{InPlaceOf: inPlaceOf}
			var err error
			if req.Files, err = planFiles(from); err != nil {
				return err
			}
			what := "plan -f " + from
			answer, err := ask(cmd.Context(), c, what, planWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.PlanResponse, error) {
				return client.Record.Plan(ctx, req)
			})
			if err != nil {
				return err
			}
			p := forecast{raw: json.RawMessage(answer.GetDocument())}
			if err := json.Unmarshal(p.raw, &p.Plan); err != nil {
				return fmt.Errorf("%s: the answer cannot be read: %w; use the release of fairlead that the group runs", what, err)
			}
			return c.print(p)
		},
	}
	cmd.Flags().StringVarP(&from, "filename", "f", "", "file with manifests, or folder")
	cmd.Flags().StringVar(&inPlaceOf, "in-place-of", "", "source that is a folder, as \"fairlead get sources\" names it, that they stand for")
	c.completeFlag(cmd, "in-place-of", "sources")
	return cmd
}

// planFiles reads a file, or the manifests of a folder and its subfolders. Errors: what cannot be read, and too much.
func planFiles(from string) ([]*fairleadv1.PlanRequest_File, error) {
	names := []string{from}
	info, err := os.Stat(from)
	if err != nil {
		return nil, fmt.Errorf("plan -f %s: %w; name a file with manifests, or a folder", from, err)
	}
	if info.IsDir() {
		names = nil
		err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
			hidden := name != from && strings.HasPrefix(d.Name(), ".")
			switch {
			case err != nil:
				return err
			case d.IsDir() && hidden:
				return fs.SkipDir
			case !d.IsDir() && !hidden && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name))):
				names = append(names, name)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("plan -f %s: %w", from, err)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("plan -f %s: no manifests (*.yaml, *.yml, *.json) are there; name a folder that has some", from)
	}
	var files []*fairleadv1.PlanRequest_File
	size := 0
	for _, name := range names {
		data, err := readUpTo(name, records.PlanMaxBytes-size)
		if err != nil {
			return nil, fmt.Errorf("plan -f %s: %w", from, err)
		}
		size += len(name) + len(data)
		if size > records.PlanMaxBytes {
			return nil, fmt.Errorf("plan -f %s: more than %d KiB of manifests; name those that change", from, records.PlanMaxBytes>>10)
		}
		files = append(files, &fairleadv1.PlanRequest_File{Name: name, Data: data})
	}
	return files, nil
}

// readUpTo reads a file, and a byte more than most at most: whoever asks can tell that it is too large.
func readUpTo(name string, most int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(max(most, 0))+1))
}

// forecast is what `fairlead plan` prints. In JSON it is what the member said, newer fields included.
type forecast struct {
	records.Plan
	raw json.RawMessage
}

// MarshalJSON gives the document as it came.
func (p forecast) MarshalJSON() ([]byte, error) { return p.raw, nil }

// WriteTable writes what would change, what would be held and what would wait.
func (p forecast) WriteTable(w io.Writer) error {
	t := &whyText{}
	for _, problem := range p.Problems {
		t.line("manifests: %s", problem)
	}
	switch {
	case p.Left > 0:
		t.line("manifests: %d objects of outside load balancers are left out: %s", p.Left, p.LeftWhy)
	case p.LeftWhy != "":
		t.line("manifests: what they would take off outside load balancers is left out: %s", p.LeftWhy)
	}
	for _, object := range p.Unforetold {
		t.line("manifests: not foretold: %s; `fairlead get policies` tells what came of it once it is applied", object)
	}
	if len(p.Changes) == 0 && len(p.Calls) == 0 {
		t.line("Nothing %swould change.", map[bool]string{true: "else "}[p.LeftWhy != "" || len(p.Unforetold) > 0])
	}
	rows := func(title string, header []string, rows [][]string) { t.rows(title, header, rows) }
	var changes, calls, held, waiting [][]string
	for _, c := range p.Changes {
		changes = append(changes, []string{c.Target, c.Name, c.What})
	}
	rows("Would change:", []string{"TARGET", "NAME", "WHAT"}, changes)
	for _, c := range p.Calls {
		about := strings.TrimSpace(c.LoadBalancer + " " + c.Target)
		calls = append(calls, []string{c.Driver, c.Action, cmp.Or(about, c.Owner), c.Address, c.With})
	}
	rows("Drivers would be called:", []string{"DRIVER", "ACTION", "ABOUT", "ADDRESS", "WITH"}, calls)
	for _, h := range p.Held {
		held = append(held, []string{h.Of, h.Why, namesText(h.Subjects)})
	}
	rows("Would be held until an operator lets it go ahead (`fairlead holds`):", []string{"OF", "WHY", "SUBJECTS"}, held)
	for _, x := range p.Waiting {
		waiting = append(waiting, []string{x.Kind, x.Name, x.Text + " [" + x.Code + "]"})
	}
	rows("Would wait:", []string{"KIND", "NAME", "WHY"}, waiting)
	t.line("")
	t.line("Planned by %s from revision %s. Nothing was changed.", p.AnsweredBy, revisionText(p.Revision))
	if t.err != nil {
		return t.err
	}
	_, err := t.b.WriteTo(w)
	return err
}

var _ output.Tabler = forecast{}
