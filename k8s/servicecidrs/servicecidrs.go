// SPDX-License-Identifier: Apache-2.0

// Package servicecidrs knows from which prefixes the API server gives out ClusterIPs, where it says so: its ServiceCIDRs, of every
// cluster since Kubernetes 1.33. An API server without them, and one that does not let us read them, tells nothing. Start reading at
// Follower.
package servicecidrs

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/k8s/client"
)

// How often to ask: ServiceCIDRs hardly ever change. Until there was an answer, more often.
const (
	every      = time.Minute
	everyFirst = time.Second
	callFor    = 10 * time.Second
	// most bounds how many prefixes count.
	most = 1024
)

// Clock is the time that this package lives by.
type Clock interface {
	After(d time.Duration) <-chan time.Time
}

// Follower asks for ServiceCIDRs all the time. Its methods may be called from any goroutine; Run from one.
type Follower struct {
	API   *client.API
	Clock Clock
	Log   *slog.Logger

	prefixes atomic.Pointer[[]netip.Prefix]
	told     bool
}

// Prefixes are those of the newest answer, sorted; nil before there was one, and where the API server has none. They must not be changed.
func (f *Follower) Prefixes() []netip.Prefix {
	if p := f.prefixes.Load(); p != nil {
		return *p
	}
	return nil
}

// Run asks until ctx ends, and then returns nil. What was known stays while there is no answer.
func (f *Follower) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		f.ask(ctx)
		wait := every
		if f.prefixes.Load() == nil {
			wait = everyFirst
		}
		select {
		case <-ctx.Done():
		case <-f.Clock.After(wait):
		}
	}
	return nil
}

// ask asks once. It is answered, too, if the API server knows no ServiceCIDRs, or does not let us read them: what was known stays then.
func (f *Follower) ask(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	list, err := f.API.Dynamic.Resource(schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs"}).
		List(call, metav1.ListOptions{})
	switch {
	case err == nil:
		f.told = false
		if now := prefixesOf(list); len(now) > 0 || f.prefixes.Load() == nil { // one that has them is never without
			f.take(now)
		}
	case apierrors.IsNotFound(err):
		f.prefixes.CompareAndSwap(nil, &[]netip.Prefix{}) // an older release; or one of its kinds is away for a moment
	case apierrors.IsForbidden(err):
		if !f.told {
			f.told = true
			f.Log.Warn("prefixes of ClusterIPs not read", "err", err, "remedy", "allow list of servicecidrs of networking.k8s.io to this account, as deploy/ does, or name them in clusterCIDRs")
		}
		f.prefixes.CompareAndSwap(nil, &[]netip.Prefix{})
	case !errors.Is(err, context.Canceled):
		f.Log.Debug("prefixes of ClusterIPs not read, trying again", "err", err)
	}
}

func (f *Follower) take(now []netip.Prefix) {
	if before := f.prefixes.Load(); before != nil && slices.Equal(*before, now) {
		return
	}
	f.prefixes.Store(&now)
	f.Log.Info("prefixes of ClusterIPs read", "prefixes", now)
}

// prefixesOf are the prefixes that objects have. What is none, or is everything, is left out.
func prefixesOf(list *unstructured.UnstructuredList) []netip.Prefix {
	out := []netip.Prefix{}
	for i := range list.Items {
		texts, _, _ := unstructured.NestedStringSlice(list.Items[i].Object, "spec", "cidrs")
		for _, text := range texts {
			if p, err := netip.ParsePrefix(text); err == nil && p.Bits() > 0 && !p.Addr().Is4In6() {
				out = append(out, p.Masked())
			}
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	out = slices.Compact(out)
	return out[:min(len(out), most)]
}
