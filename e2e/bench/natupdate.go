// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
)

const (
	natChanges = 20
	// natPatience bounds one change: kube-proxy may still be busy with the Services before.
	natPatience = 2 * time.Minute
)

// natUpdate takes the time from the API server's answer to a change of endpoints until the rules of a node have their last
// transaction on account of it: of the agent's nat, and of kube-proxy's nftables mode for the same change. An endpoint of one
// Service leaves and comes back.
func natUpdate(t *bench) figures {
	n := newNATLab(t)
	var f figures
	detail := map[string]any{"endpoints": natEndpoints}
	for _, size := range natSizes {
		detail[fmt.Sprintf("translated_s_%d", size)] = n.grow(size)
		t.progressf("changing endpoints among %d Services", size)
		took, own := n.updates()
		f.samples = took[n.nodes[0]]
		of := map[string]any{}
		for _, node := range n.nodes {
			of[node.name] = map[string]any{"update_ms": spread(took[node]), "own_mean_ms": own[node]}
		}
		detail[fmt.Sprintf("services_%d", size)] = of
	}
	f.detail = detail
	return f
}

// updates makes the changes, and gives the milliseconds until each node had its rules, and the mean of what each tells of
// itself: of bringing the table to a state, or of syncing rules.
func (n *natLab) updates() (took map[*natNode][]float64, own map[*natNode]float64) {
	took, own = map[*natNode][]float64{}, map[*natNode]float64{}
	watches := map[*natNode]*transactions{}
	for _, node := range n.nodes {
		watches[node] = watchTransactions(n.t, node)
	}
	defer func() {
		for _, w := range watches {
			w.close()
		}
	}()
	// What was made before is done with, and the leader has listed twice: until then it takes no endpoint for gone.
	n.lab.EventuallyWithin("quiet", 10*time.Minute, func() error {
		time.Sleep(10 * natQuiet)
		for _, node := range n.nodes {
			if !watches[node].quiet(10 * natQuiet) {
				return fmt.Errorf("%s still changes rules", node.name)
			}
		}
		return nil
	})
	before := n.ownTimes()
	for i := range natChanges {
		for _, w := range watches {
			w.forget()
		}
		at := n.change(n.scattered(i/2), natEndpoints-1+i%2)
		time.Sleep(natQuiet)
		for _, node := range n.nodes {
			took[node] = append(took[node], milliseconds(watches[node].last(n.t, node, natQuiet).Sub(at)))
		}
	}
	after := n.ownTimes()
	for _, node := range n.nodes {
		own[node] = 1000 * (after[node].sum - before[node].sum) / max(1, after[node].count-before[node].count)
	}
	return took, own
}

// change gives Service i so many endpoints, and tells when the API server acknowledged that.
func (n *natLab) change(i, endpoints int) time.Time {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	_, err := n.api.Client().DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Update(ctx, natSlice(i, endpoints), metav1.UpdateOptions{})
	at := time.Now()
	if err != nil {
		n.t.Fatal(err)
	}
	return at
}

// histogram is the sum of what was observed, in seconds, and how often.
type histogram struct{ sum, count float64 }

// ownTimes is what each node tells of its own work so far.
func (n *natLab) ownTimes() map[*natNode]histogram {
	out := map[*natNode]histogram{}
	for i, of := range []struct {
		port         int
		name, labels string
	}{
		{7480, "fairlead_nat_apply_seconds", ""},
		{kubetest.ProxyMetrics, "kubeproxy_sync_proxy_rules_duration_seconds", `{ip_family="IPv4"}`},
	} {
		address := fmt.Sprintf("%s:%d", lab.NodeAddress(i+1), of.port)
		out[n.nodes[i]] = histogram{number(metric(address, of.name+"_sum"+of.labels)), number(metric(address, of.name+"_count"+of.labels))}
	}
	return out
}

// transactions tells when nftables was last changed in a namespace.
type transactions struct {
	socket *os.File
	done   chan struct{}
	mu     sync.Mutex
	at     time.Time
	err    error // nothing is heard any more
}

func watchTransactions(t *bench, node *natNode) *transactions {
	var fd int
	if err := node.ns.Do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER); err != nil {
			return err
		}
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20), // an event lost is an error
			unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}),
			unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.NFNLGRP_NFTABLES),
		)
	}); err != nil {
		t.Fatal(err)
	}
	w := &transactions{socket: os.NewFile(uintptr(fd), "nftables"), done: make(chan struct{})}
	go w.read()
	return w
}

func (w *transactions) read() {
	defer close(w.done)
	for buffer := make([]byte, 1<<16); ; {
		_, err := w.socket.Read(buffer)
		now := time.Now()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		w.mu.Lock()
		w.at, w.err = now, err
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (w *transactions) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = time.Time{}
}

// quiet tells whether no transaction came for so long.
func (w *transactions) quiet(long time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.at) >= long
}

// last is when the last transaction came before so much time without one.
func (w *transactions) last(t *bench, node *natNode, quiet time.Duration) time.Time {
	for deadline := time.Now().Add(natPatience); ; time.Sleep(10 * time.Millisecond) {
		w.mu.Lock()
		at, err := w.at, w.err
		w.mu.Unlock()
		if err != nil {
			t.Fatalf("%s: watch nftables: %v", node.name, err)
		}
		if !at.IsZero() && time.Since(at) >= quiet {
			return at
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: the last transaction was at %v", node.name, at)
		}
	}
}

func (w *transactions) close() {
	_ = w.socket.SetReadDeadline(time.Unix(1, 0))
	<-w.done
	_ = w.socket.Close()
}
