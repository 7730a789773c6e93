// SPDX-License-Identifier: Apache-2.0

// Package world holds what a source of wishes sees: the Services, endpoints, Nodes and configuration objects of
// a Kubernetes cluster or of a folder of manifests, as plain values.
//
// A World carries evidence, never a verdict: which kinds were listed in full, how old that is, which objects were
// seen to go and how. What may be removed on that evidence is decided by the leader, in one place for every source.
// A World is immutable once handed out, and so is every object that its lists point to: Worlds that follow each other, and
// the source, share those that did not change, and objects share parts that are equal. Whoever wants to change one takes a Clone
// first. Its slices are sorted, so that the same objects always make the same World.
//
// Start reading at World, then Service and EndpointSlice.
package world

import "time"

// Kind names a kind of object as its manifests spell it.
type Kind string

// The kinds that a source may yield.
const (
	KindService       Kind = "Service"
	KindEndpointSlice Kind = "EndpointSlice"
	KindNode          Kind = "Node"
	KindPool          Kind = "IPAddressPool"
	KindPeer          Kind = "BGPPeer"
	KindAdvertisement Kind = "BGPAdvertisement"
	KindL2Advert      Kind = "L2Advertisement"
	KindBFDProfile    Kind = "BFDProfile"
	KindCommunity     Kind = "Community"
	KindPolicy        Kind = "AddressPolicy"
	KindNamespace     Kind = "Namespace"
	KindConfigMap     Kind = "ConfigMap"
	KindDriver        Kind = "LoadBalancerDriver"
	KindLoadBalancer  Kind = "LoadBalancer"
	KindBackendGroup  Kind = "BackendGroup"
	KindBind          Kind = "Bind"
	KindBackendRecord Kind = "BackendRecord"
	KindPod           Kind = "Pod"

	KindBalancingPolicy Kind = "BalancingPolicy"
	KindLocalRedirect   Kind = "LocalRedirectPolicy"
)

// Kinds lists every kind in the order of their names.
func Kinds() []Kind {
	return []Kind{
		KindPolicy, KindBFDProfile, KindAdvertisement, KindPeer, KindBackendGroup, KindBackendRecord, KindBalancingPolicy, KindBind, KindCommunity,
		KindConfigMap, KindEndpointSlice, KindPool, KindL2Advert, KindLoadBalancer, KindDriver, KindLocalRedirect, KindNamespace, KindNode, KindPod,
		KindService,
	}
}

// Configures tells whether objects of a kind say how the network outside is used, for all Services: whoever may write one
// has a word in everybody's addresses and routes. Sources read them from namespaces of operators alone.
func (k Kind) Configures() bool {
	switch k {
	case KindPool, KindPeer, KindAdvertisement, KindL2Advert, KindBFDProfile, KindCommunity, KindPolicy:
		return true
	}
	return false
}

// World is one view of one source.
type World struct {
	// Source names where the view comes from, for example "manifests" or "kubernetes".
	Source string
	// Cluster is the UID of the kube-system Namespace, which no other cluster shares. A source that sees no
	// cluster gives a constant of its own.
	Cluster string
	// WholeCluster says that the source reads a live cluster. In such a view the Service default/kubernetes and at
	// least one Node always exist, so that a view without them is broken, however complete it claims to be. A
	// folder of manifests makes no such claim.
	WholeCluster bool
	// Complete says that every kind in Kinds is.
	Complete bool
	// Age is how long ago the oldest of Kinds was last confirmed, at the moment this World was handed out.
	Age time.Duration

	Kinds []KindView

	Services         []*Service
	EndpointSlices   []*EndpointSlice
	Nodes            []*Node
	Pools            []*Pool
	Peers            []*Peer
	Advertisements   []*Advertisement
	Communities      []*Community
	L2Advertisements []*L2Advertisement
	AddressPolicies  []*AddressPolicy
	Namespaces       []*Namespace
	BFDProfiles      []*BFDProfile
	ConfigMaps       []*ConfigMap

	Drivers        []*Driver
	LoadBalancers  []*OutsideBalancer
	BackendGroups  []*BackendGroup
	Binds          []*Bind
	BackendRecords []*BackendRecord
	Pods           []*Pod

	BalancingPolicies     []*BalancingPolicy
	LocalRedirectPolicies []*LocalRedirectPolicy

	// Unusable names objects that exist but could not be understood and were never understood before. They are
	// not absent: nothing may be removed for the lack of them. Of objects that configure the fabric, those are among them that are in
	// a namespace which is not read for that: they have it in their ID, and so never stand for one that is read.
	Unusable []Ref
	// Deleted is evidence of objects that went. It is kept for as long as the source runs, up to a bound; when it
	// is dropped, the absence from the next lists speaks for itself.
	Deleted []Deletion
	// Vouched are objects that were there when they were asked for by name though somebody knew them to be gone. Others that were deleted
	// once are shown for the want of better.
	Vouched []Ref
	// Problems is what a person should mend, worst first.
	Problems []Problem
}

// KindView tells how far the objects of one kind can be trusted.
type KindView struct {
	Kind Kind
	// Listed says that the objects of the kind were listed in full at least once, so that what is there may be
	// acted on.
	Listed bool
	// Complete says that the newest list left nothing out: whatever is neither in it nor in Unusable is absent.
	Complete bool
	// Away says that the source cannot read the kind just now, and does not know of what was made since. Sources that are
	// never cut off from theirs, such as files, leave it false.
	Away bool
	// Lists counts the complete lists of this run of the source. Updates seen on a watch do not count.
	Lists uint64
	// Version is the newest resourceVersion known of the kind, from list, watch or bookmark. Zero where the
	// source has none, such as files.
	Version uint64
	// ListAge is how long ago the newest complete list was begun, ListedAge how long ago its answer was there in full, and
	// Age how long ago the source last heard anything of the kind, all at the moment the World was handed out.
	ListAge   time.Duration
	ListedAge time.Duration
	Age       time.Duration
}

// View gives the view of a kind; false if the source does not yield that kind.
func (w *World) View(kind Kind) (KindView, bool) {
	for _, v := range w.Kinds {
		if v.Kind == kind {
			return v, true
		}
	}
	return KindView{}, false
}

// ID names an object of a kind. Namespace is empty for kinds without one; configuration objects (pools, peers,
// advertisements, profiles, communities) are referred to by name alone and have none either. Several of these may have one name:
// which of them counts is for whoever knows which one was there first.
type ID struct {
	Namespace string
	Name      string
}

// String is "namespace/name", or the name alone.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Name
	}
	return id.Namespace + "/" + id.Name
}

// Ref names one life of one object: a new object under an old name has another UID. UID is empty where the source
// has none.
type Ref struct {
	Kind Kind
	ID
	UID string
}

// String is "Kind namespace/name".
func (r Ref) String() string { return string(r.Kind) + " " + r.ID.String() }

// Meta is what all objects have.
type Meta struct {
	ID
	UID string
	// Version is the object's resourceVersion, zero where the source has none.
	Version uint64
	// Created is in seconds since 1970, up to 2106, zero if unknown. It orders the old before the young, for people and for
	// ties; it is never compared with a clock.
	Created uint32
	// Deleting says that the object has a deletionTimestamp: it is going, whatever holds it.
	Deleting bool
}

// Homed is what objects have that are in a namespace though their ID is their name alone.
type Homed struct {
	// Home is that namespace.
	Home string
}

// HomeOf gives where an object, to which there is a pointer, has its Home; nil if its kind has none.
func HomeOf(object any) *string {
	if h, ok := object.(interface{ home() *string }); ok {
		return h.home()
	}
	return nil
}

func (h *Homed) home() *string { return &h.Home }

// How tells what showed that an object went.
type How string

// The ways of going.
const (
	// ByWatch is a delete event on a live watch.
	ByWatch How = "watch"
	// ByScan is an object that one run of a polled source saw in one complete reading and missed in later ones,
	// with no failed reading in between.
	ByScan How = "scan"
)

// Deletion is evidence that one life of an object ended.
type Deletion struct {
	Ref
	// Service is the one that a deleted EndpointSlice belonged to; zero for other kinds.
	Service ID
	// Mirror is that of a deleted BackendRecord.
	Mirror string
	// Version is the resourceVersion of the delete, zero where the source has none.
	Version uint64
	How     How
}

// Severity tells what a problem costs.
type Severity string

// Severities, worst first.
const (
	// Failed: the object or file is not used, or not in its newest form.
	Failed Severity = "error"
	// Degraded: it is used, without the part named.
	Degraded Severity = "warning"
	// Ignored: nothing here was meant for us, or not yet.
	Ignored Severity = "info"
)

// Problem is one thing a person should know about the source's input. It holds no secrets.
type Problem struct {
	Severity Severity
	// File and Line (from 1) are set for sources that read files. Line is zero if unknown.
	File string
	Line int
	// Object is zero if the problem is with a whole file or list.
	Object Ref
	// Field is the path of the offending field, as manifests spell it: spec.externalIPs[0].
	Field  string
	Why    string
	Remedy string
}

// KV is an entry of a small map, kept as a sorted slice so that it has one form.
type KV struct {
	Key   string
	Value string
}

// ConfigMap is the data of one of the config maps that Fairlead reads.
type ConfigMap struct {
	Meta
	Data []KV
}

// Get gives the value of a key, and whether there is one.
func (c ConfigMap) Get(key string) (string, bool) {
	for _, kv := range c.Data {
		if kv.Key == key {
			return kv.Value, true
		}
	}
	return "", false
}
