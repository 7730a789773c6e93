// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/deploy/crds"
	"fairlead.io/fairlead/internal/smallfile"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/takeover"
)

// takingOver are the flags of `fairlead migrate lbcf`.
type takingOver struct {
	kubeconfig     string
	dryRun         bool
	stopOld        bool
	configurations string
	verify         bool
	all            bool
	within         time.Duration
}

func newMigrateLBCF(c *cli) *cobra.Command {
	var o takingOver
	cmd := &cobra.Command{
		Use:   "lbcf",
		Short: "Take over load balancers, backends and drivers from LBCF",
		Long: "Tell what becomes of every object of LBCF once Fairlead acts on them, and prepare the cluster for it: LBCF's controller\n" +
			"is stopped (by you, or with --stop-old), the definitions of its kinds are brought up to date, and the hand-over is noted.\n" +
			"Objects are not changed, and every step may be repeated. Registered, unchanged backends are adopted: no driver is called.\n" +
			"With --dry-run the cluster is only read.",
		Example: "  fairlead migrate lbcf --dry-run\n" +
			"  fairlead migrate lbcf --stop-old --verify",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.kubeconfig == "" {
				o.kubeconfig = defaultKubeconfig(c.getenv)
			}
			answer, err := c.takeOver(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.print(answer)
		},
	}
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "file of an account that may read the cluster and apply definitions (default $KUBECONFIG, then ~/.kube/config)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "tell what would become of each object, change nothing")
	cmd.Flags().BoolVar(&o.stopOld, "stop-old", false, "scale LBCF's controller to 0 and wait until its pods have ended")
	cmd.Flags().StringVar(&o.configurations, "webhook-configurations", "", "file with lbcf-validate and lbcf-mutate to apply, once the group serves admission")
	cmd.Flags().BoolVar(&o.verify, "verify", false, "ask the group whether it has every adopted backend and called no driver for it")
	cmd.Flags().BoolVar(&o.all, "all", false, "list adopted records, too (JSON always has them)")
	cmd.Flags().DurationVar(&o.within, "within", 2*time.Minute, "how long pods may take to end, and the group to adopt")
	return cmd
}

// takeOver reads, judges, and unless it is a dry run carries out the steps.
func (c *cli) takeOver(ctx context.Context, o takingOver) (takenOver, error) {
	answer := takenOver{DryRun: o.dryRun, Done: []string{}, WayBack: wayBack(), all: o.all}
	manifests, err := crds.Files()
	if err != nil {
		return answer, err
	}
	wanted, err := takeover.ParseDefinitions(manifests)
	if err != nil {
		return answer, err
	}
	api, err := client.Open(client.Options{Kubeconfig: o.kubeconfig})
	if err != nil {
		return answer, err
	}
	cluster, err := takeover.In(api)
	if err != nil {
		return answer, err
	}
	look := func() error {
		in, err := cluster.Read(ctx)
		if errors.Is(err, takeover.ErrNothing) {
			return fmt.Errorf("migrate lbcf: %w; `kubectl apply -f deploy/crds` installs its kinds", err)
		} else if err != nil {
			return fmt.Errorf("migrate lbcf: %w", err)
		}
		answer.Report = takeover.Judge(in, wanted, namesOfRecords())
		return nil
	}
	if err := look(); err != nil || o.dryRun {
		return answer, err
	}
	if answer.Running != "" {
		if !o.stopOld {
			return answer, fmt.Errorf("migrate lbcf: an LBCF controller acts on the same objects: %s; stop it, or let --stop-old do it; nothing was changed", answer.Running)
		}
		if err := answer.stop(ctx, cluster, o.within); err != nil {
			return answer, err
		}
		if err := look(); err != nil { // what it wrote last counts
			return answer, err
		}
	}
	if err := answer.prepare(ctx, cluster, wanted, o.configurations); err != nil {
		return answer, err
	}
	if o.verify {
		return answer, c.verifyAdoption(ctx, &answer, o.within)
	}
	return answer, nil
}

// namesOfRecords are those that the leader gives.
func namesOfRecords() takeover.Names {
	return takeover.Names{
		Pod: balancers.PodRecord, Service: balancers.ServiceRecord, Static: balancers.StaticRecord,
		Bind: balancers.BindRecord, Apart: balancers.Apart,
	}
}

func (t *takenOver) stop(ctx context.Context, cluster *takeover.Cluster, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	stopped, err := cluster.Stop(ctx)
	for _, d := range stopped {
		t.Done = append(t.Done, fmt.Sprintf("scaled deployment kube-system/%s from %d to 0", d.Name, d.Wanted))
	}
	if err != nil {
		return fmt.Errorf("migrate lbcf: %w; scale it up again, or end the pods and repeat", err)
	}
	return nil
}

func (t *takenOver) prepare(ctx context.Context, cluster *takeover.Cluster, wanted []takeover.Definition, configurations string) error {
	if err := cluster.ApplyDefinitions(ctx, wanted); err != nil {
		return fmt.Errorf("migrate lbcf: %w", err)
	}
	t.Done = append(t.Done, fmt.Sprintf("applied %d definitions", len(wanted)))
	if configurations != "" {
		text, err := smallfile.Read(configurations, 64<<20)
		if err != nil {
			return fmt.Errorf("migrate lbcf: %w", err)
		}
		if err := cluster.ApplyConfigurations(ctx, text); err != nil {
			return fmt.Errorf("migrate lbcf: %s: %w", configurations, err)
		}
		t.Done = append(t.Done, "applied the admission configurations of "+configurations)
	}
	if err := cluster.Mark(ctx, time.Now()); err != nil {
		return fmt.Errorf("migrate lbcf: %w", err)
	}
	t.Done = append(t.Done, "noted the hand-over on the definition of BackendRecords")
	return nil
}

// verifyEvery is the pause between two looks at the record, and verifyLooks how many of them in a row must find all well: what
// is taken over is compared with what is wanted only after that.
const (
	verifyEvery = time.Second
	verifyLooks = 2
)

// verifyAdoption waits until the group has a binding for each adopted record, bound with its address, and says what it lacks.
func (c *cli) verifyAdoption(ctx context.Context, t *takenOver, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last, lacks error // a group that changes its leader answers again soon, and what it lacked is worth more than that
	for well := 0; ; {
		missing, err := c.unadopted(ctx, t.Report)
		switch {
		case err != nil && ctx.Err() == nil:
			well = 0
			if last = fmt.Errorf("migrate lbcf: %w", err); lacks != nil {
				last = fmt.Errorf("%w; asked once more: %w", lacks, err)
			}
		case err != nil: // time is up, which says nothing of the group
		case len(missing) > 0:
			well = 0
			lacks = fmt.Errorf("migrate lbcf: the group has not adopted %d of %d backends, such as %s; see `fairlead get bindings` and the log of its leader",
				len(missing), t.Count()[takeover.Adopted], missing[0])
			last = lacks
		case well+1 < verifyLooks:
			well++
		default:
			t.Done = append(t.Done, fmt.Sprintf("the group has all %d adopted backends, and no driver was called for what LBCF left", t.Count()[takeover.Adopted]))
			return nil
		}
		select {
		case <-ctx.Done():
			return cmp.Or(last, fmt.Errorf("migrate lbcf: the group did not answer within %s", within))
		case <-time.After(verifyEvery):
		}
	}
}

// unadopted asks the group, and names what it has not.
func (c *cli) unadopted(ctx context.Context, r takeover.Report) (missing []string, err error) {
	bindings, _ := records.Find("bindings")
	operations, _ := records.Find("operations")
	have, err := c.get(ctx, bindings, &fairleadv1.GetRequest{Linearizable: true})
	if err != nil {
		return nil, err
	}
	calls, err := c.get(ctx, operations, &fairleadv1.GetRequest{Linearizable: true})
	if err != nil {
		return nil, err
	}
	return unadopted(r, have.Items, calls.Items)
}

// unadopted names the adopted records that the group has not, with what it has instead: another address or state, or calls
// about it. What is ensured periodically, as before, may have been called, and what the group registered itself was.
func unadopted(r takeover.Report, bindings, operations []json.RawMessage) (missing []string, err error) {
	have, err := documentsBy(bindings, func(b records.Binding) string { return b.Name })
	if err != nil {
		return nil, err
	}
	called, err := documentsBy(operations, func(o records.Operation) string { return o.Binding })
	if err != nil {
		return nil, err
	}
	for _, record := range r.Records {
		if record.Verdict != takeover.Adopted {
			continue
		}
		b, ok := have[record.Name]
		call, any := called[record.Name]
		switch {
		case !ok:
			missing = append(missing, record.Name)
		case b.Address != record.Address:
			missing = append(missing, fmt.Sprintf("%s (address %q, not %q)", record.Name, b.Address, record.Address))
		case b.State != "bound":
			missing = append(missing, fmt.Sprintf("%s (%s)", record.Name, b.State))
		case any && record.Why == "" && !record.Ours:
			missing = append(missing, fmt.Sprintf("%s (its driver was called: %s)", record.Name, call.Action))
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// documentsBy finds documents of one kind by a name in them.
func documentsBy[T any](documents []json.RawMessage, name func(T) string) (map[string]T, error) {
	out := make(map[string]T, len(documents))
	for _, document := range documents {
		var one T
		if err := json.Unmarshal(document, &one); err != nil {
			return nil, err
		}
		out[name(one)] = one
	}
	return out, nil
}

// wayBack is how LBCF gets its objects again.
func wayBack() []string {
	return []string{
		"take sources.kubernetes out of every member's controller.yaml, or scale the members to 0, and wait until they have restarted",
		"kubectl apply the former lbcf-validate and lbcf-mutate, if they were replaced",
		"kubectl -n kube-system scale deployment lbcf-controller --replicas=1",
		strings.Join([]string{"leave BackendRecords, statuses and definitions as they are: LBCF knows their names, and does not read",
			"what was added"}, " "),
	}
}
