// SPDX-License-Identifier: Apache-2.0

//go:build ignore

/*
 * Resolution of service addresses at the client: a socket that is told to connect to, or to send to, an address of the
 * table "frontends" is connected to one of that address's backends instead, before any packet exists.
 *
 * What is in the tables is decided in Go (package sock), which address comes before which too: a row holds what to do
 * first, and what to do where the first may not be done now. These programs look up, draw, and remember; they have no
 * loop over backends, and cost the same however many there are.
 *
 * Addresses are 16 bytes in network order, IPv4 as ::ffff:a.b.c.d; ports are in network order.
 */

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2
#define AF_INET6 10
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define TCP 6
#define UDP 17
#define EEXIST 17
#define ECONNREFUSED 111
#define EHOSTUNREACH 113
#define NANOSECONDS 1000000000ULL

/* A backend's row in "slots" is found by its place among those drawn from, and, with this bit, by its identity. */
#define MEMBER 0x80000000

/* How often a draw is repeated that met a set which was just replaced. */
#define ATTEMPTS 3

/* Times, multiplied by this (2^64 by the golden ratio), differ in their upper half, however coarse the clock is. */
#define SPREAD 0x9e3779b97f4a7c15ULL

struct place {
	__be32 address[4];
	__be16 port;
	__u8 protocol;
	__u8 zero;
};

enum verdict { PASS, USE, REFUSE, UNREACHABLE };

/* flags of a choice */
#define LIMITED 1 /* so many a second; beyond, the other choice counts */
#define SPARES_BACKENDS 2 /* not for sockets of the rule's own backends */

struct choice {
	__u32 rule;
	__u32 set;
	__u32 count; /* of slots */
	__u32 affinity; /* seconds; 0: none */
	__u8 verdict;
	__u8 kind;
	__u8 mode;
	__u8 flags;
};

/* The key stands in the value once more: memory of a row that was removed may be another's row a moment later. */
struct frontend {
	struct place self;
	struct choice first;
	struct choice then;
};

struct slot_key {
	__u32 set;
	__u32 index;
};

struct slot {
	struct slot_key self;
	__be32 address[4];
	__be16 port;
	__u16 zero;
	__u32 id;
};

struct memory_key {
	__u64 client; /* network namespace, or socket */
	struct place to;
	__u32 rule;
};

struct memory {
	__u64 last; /* use, nanoseconds of the monotonic clock */
	__u32 backend;
	__u32 zero;
};

struct record_key {
	__u64 socket;
	struct place backend;
	__u32 zero;
};

struct record {
	struct place original;
	__u32 rule;
};

struct window {
	struct bpf_spin_lock lock;
	__u32 taken;
	__u64 second;
};

struct own_key {
	__u64 cgroup;
	__u32 rule;
	__u32 zero;
};

struct settings {
	__u8 ipv4;
	__u8 ipv6;
	__u8 events; /* 0: none */
	__u8 zero;
	__u32 limit; /* of redirects a second and place; 0: none */
	__u64 udp_idle; /* nanoseconds that a choice for datagrams is kept without use */
	__u64 exempt; /* cgroup whose sockets are left alone; 0: none */
	__u32 exempt_priority; /* SO_PRIORITY of sockets that are left alone; 0: none */
	__u32 pod_levels; /* depth of cgroups, a bit each, at which pods' are */
};

enum failure { NO_FAILURE, NO_BACKEND, NOT_FOUND, AFFINITY_FAILED = 100, RECORD_FAILED = 101 };

/* flags of an event */
#define EVENT_LIMITED 1

struct event {
	__u64 time; /* nanoseconds since boot, suspended or not */
	__u64 cgroup;
	__u64 netns;
	__u32 pid;
	__u32 rule;
	struct place to;
	struct place backend;
	__u8 failure;
	__u8 kind;
	__u8 mode;
	__u8 flags;
	__u8 family;
	__u8 zero[3];
};

/* keeps the type among those that are told to Go */
const struct event *unused_event __attribute__((unused));

/* counters, one of each kind and outcome; the kinds are those of choices */
enum outcome { RESOLVED, REFUSED, FAILED, PASSED, SPENT, STICKY, FORGOTTEN, UNTOLD, OUTCOMES };
#define KINDS 4

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct place);
	__type(value, struct frontend);
} frontends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct slot_key);
	__type(value, struct slot);
} slots SEC(".maps");

/* addresses of nodes, at which node ports are served: rows of "frontends" with an address of ones only */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__uint(key_size, 16);
	__type(value, __u32);
} nodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct place);
	__type(value, struct window);
} windows SEC(".maps");

/* pods whose sockets a rule leaves alone, since it leads to them */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct own_key);
	__type(value, __u32);
} own SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct memory_key);
	__type(value, struct memory);
} affinity SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct memory_key);
	__type(value, struct memory);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct record_key);
	__type(value, struct record);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KINDS * OUTCOMES);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

/* The helper that says which error a refused call has came with Linux 5.18; before, it is EPERM. */
const volatile __u8 can_say_error = 1;

/* The last kind that counters have a row for; more would be a fault of the agent. */
static __always_inline void count(__u32 kind, enum outcome outcome)
{
	__u32 at = (kind & (KINDS - 1)) * OUTCOMES + outcome;
	__u64 *n = bpf_map_lookup_elem(&counters, &at);
	if (n)
		(*n)++;
}

static __always_inline int same_address(const __be32 *a, const __be32 *b)
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

static __always_inline int same_place(const struct place *a, const struct place *b)
{
	return same_address(a->address, b->address) && a->port == b->port && a->protocol == b->protocol;
}

static __always_inline int mapped(const __be32 *a)
{
	return a[0] == 0 && a[1] == 0 && a[2] == bpf_htonl(0xffff);
}

/* read_frontend copies a row, 0 if there is none, or one whose memory changed hands while it was read. */
static __always_inline int read_frontend(const struct place *key, struct frontend *out)
{
	struct frontend *f = bpf_map_lookup_elem(&frontends, key);
	if (!f || !same_place(&f->self, key))
		return 0;
	__builtin_memcpy(out, f, sizeof(*out));
	barrier();
	return same_place(&f->self, key);
}

static __always_inline int read_slot(__u32 set, __u32 index, struct slot *out)
{
	struct slot_key key = {set, index};
	struct slot *s = bpf_map_lookup_elem(&slots, &key);
	if (!s || s->self.set != set || s->self.index != index)
		return 0;
	__builtin_memcpy(out, s, sizeof(*out));
	barrier();
	return s->self.set == set && s->self.index == index;
}

/* find_frontend looks for the place itself, then, if that is at a node, for the node port. */
static __always_inline int find_frontend(const struct place *to, struct frontend *out)
{
	if (read_frontend(to, out))
		return 1;
	if (!bpf_map_lookup_elem(&nodes, to->address))
		return 0;
	struct place any = *to;
	if (!mapped(to->address))
		any.address[0] = any.address[1] = any.address[2] = 0xffffffff;
	any.address[3] = 0xffffffff;
	return read_frontend(&any, out);
}

/* take is whether one more redirect is allowed in this second. */
static __always_inline int take(const struct place *to, __u32 limit)
{
	if (!limit)
		return 1;
	struct window *w = bpf_map_lookup_elem(&windows, to);
	if (!w)
		return 1;
	__u64 second = bpf_ktime_get_ns() / NANOSECONDS;
	int allowed = 0;
	bpf_spin_lock(&w->lock);
	if (w->second != second) {
		w->second = second;
		w->taken = 0;
	}
	if (w->taken < limit) {
		w->taken++;
		allowed = 1;
	}
	bpf_spin_unlock(&w->lock);
	return allowed;
}

/* is_own is whether the socket is of a pod to which the rule leads. */
static __always_inline int is_own(__u32 rule, __u32 levels)
{
	struct own_key key = {.rule = rule};
	for (int level = 1; level < 8; level++) {
		if (!(levels & (1 << level)))
			continue;
		key.cgroup = bpf_get_current_ancestor_cgroup_id(level);
		if (key.cgroup && bpf_map_lookup_elem(&own, &key))
			return 1;
	}
	return 0;
}

/* pick decides which of a row's two choices counts now. */
static __always_inline int pick(const struct place *to, const struct frontend *f, const struct settings *s, struct choice *out, int *limited)
{
	*out = f->first;
	if ((out->flags & SPARES_BACKENDS) && is_own(out->rule, s->pod_levels)) {
		*out = f->then;
		return 1;
	}
	if ((out->flags & LIMITED) && out->verdict == USE && !take(to, s->limit)) {
		count(out->kind, SPENT);
		*out = f->then;
		*limited = 1;
	}
	return 1;
}

/* draw is what a backend is drawn by, and how it is noted then. */
struct draw {
	__u64 flags; /* of the note */
	__u32 number;
};

/* remembered gives the backend that a client had last, if it may have it still. Else it says how another one is drawn: by chance if
 * nothing is noted, and the first note counts; by the note if that counts no more, and has to be replaced. CPUs that are at it at once
 * get to the same backend, either way. */
static __always_inline int remembered(void *map, const struct memory_key *key, const struct choice *c, __u64 now, __u64 keep, struct slot *out, struct draw *d)
{
	struct memory *m = bpf_map_lookup_elem(map, key);
	if (!m) {
		d->flags = BPF_NOEXIST;
		d->number = bpf_get_prandom_u32();
		return 0;
	}
	__u64 last = *(volatile __u64 *)&m->last;
	__s64 age = now - last; /* negative if another CPU used it since this one read the clock */
	if (age > (__s64)keep || !read_slot(c->set, MEMBER | m->backend, out)) {
		count(c->kind, FORGOTTEN);
		d->flags = BPF_ANY;
		d->number = last * SPREAD >> 32;
		return 0;
	}
	if (age > 0)
		m->last = now;
	count(c->kind, STICKY);
	return 1;
}

/* choose draws a backend of a choice, or repeats what the client had: by its flow, if it is one of datagrams, else by its network
 * namespace, if the rule says so. It gives none, too, where what another CPU noted is gone again: the next attempt replaces that. */
static __always_inline int choose(struct bpf_sock_addr *ctx, const struct place *to, const struct choice *c, __u64 flow, __u64 udp_idle, int attempt, struct slot *out, __u8 *failure)
{
	if (!flow && !c->affinity)
		return c->count && read_slot(c->set, bpf_get_prandom_u32() % c->count, out);
	__u64 now = bpf_ktime_get_ns(), keep = c->affinity * NANOSECONDS;
	struct memory m = {.last = now};
	struct memory_key key = {.to = *to, .rule = c->rule};
	struct draw d = {};
	key.client = flow;
	if (flow && remembered(&flows, &key, c, now, udp_idle, out, &d))
		return 1;
	key.client = bpf_get_netns_cookie(ctx);
	if (!(c->affinity && remembered(&affinity, &key, c, now, keep, out, &d))) {
		/* A number that is not by chance meets another row at the next attempt. */
		if (!c->count || !read_slot(c->set, (d.number + attempt) % c->count, out))
			return 0;
		m.backend = out->id;
		/* Before Linux 6.4 the upper half of what this gives is not what the sign says. */
		int failed = c->affinity ? (int)bpf_map_update_elem(&affinity, &key, &m, d.flags) : 0;
		if (failed == -EEXIST) {
			if (!remembered(&affinity, &key, c, now, keep, out, &d))
				return 0;
		} else if (failed) {
			*failure = AFFINITY_FAILED;
		}
	}
	if (flow) { /* whose calls come one after the other: the kernel locks the socket */
		key.client = flow;
		m.backend = out->id;
		bpf_map_update_elem(&flows, &key, &m, BPF_ANY);
	}
	return 1;
}

static __always_inline void tell(const struct settings *s, void *ctx, const struct place *to, const struct place *backend, const struct choice *c, __u8 failure, int limited, __u8 family)
{
	if (!s->events)
		return;
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		count(c->kind, UNTOLD);
		return;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->time = bpf_ktime_get_boot_ns();
	e->cgroup = bpf_get_current_cgroup_id();
	e->netns = bpf_get_netns_cookie(ctx);
	e->pid = bpf_get_current_pid_tgid() >> 32;
	e->rule = c->rule;
	e->to = *to;
	if (backend)
		e->backend = *backend;
	e->failure = failure;
	e->kind = c->kind;
	e->mode = c->mode;
	e->flags = limited ? EVENT_LIMITED : 0;
	e->family = family;
	bpf_ringbuf_submit(e, 0);
}

static __always_inline int refuse(int error)
{
	if (can_say_error)
		bpf_set_retval(-error);
	return 0;
}

static __always_inline __u8 protocol_of(const struct bpf_sock_addr *ctx)
{
	if (ctx->type == SOCK_STREAM)
		return TCP; /* MPTCP, too, whose sockets name a protocol of their own */
	if (ctx->type == SOCK_DGRAM && ctx->protocol == UDP)
		return UDP;
	return 0;
}

enum answer { UNTOUCHED, REWRITTEN, REFUSED_CALL };

/* resolve decides for one call what it is to be about. For datagrams of sockets that are not connected, each is a call. */
static __always_inline enum answer resolve(struct bpf_sock_addr *ctx, const struct settings *s, const struct place *to, int datagram, __u8 family, struct place *backend, int *error)
{
	if (s->exempt && bpf_get_current_cgroup_id() == s->exempt)
		return UNTOUCHED;
	struct frontend f;
	struct choice c = {};
	struct slot chosen = {};
	int limited = 0, found = 0;
	__u8 failure = NO_FAILURE;
	__u64 cookie = 0;
	for (int attempt = 0; attempt < ATTEMPTS && !found; attempt++) {
		if (!find_frontend(to, &f))
			return UNTOUCHED;
		if (!limited) /* the budget is asked once */
			pick(to, &f, s, &c, &limited);
		else
			c = f.then;
		if (c.verdict != USE)
			break;
		if (!cookie)
			cookie = bpf_get_socket_cookie(ctx);
		found = choose(ctx, to, &c, datagram ? cookie : 0, s->udp_idle, attempt, &chosen, &failure);
	}
	if (c.verdict == PASS) {
		if (c.rule) {
			count(c.kind, PASSED);
			tell(s, ctx, to, 0, &c, NO_BACKEND, limited, family);
		}
		return UNTOUCHED;
	}
	if (c.verdict != USE) {
		count(c.kind, REFUSED);
		tell(s, ctx, to, 0, &c, NO_BACKEND, limited, family);
		*error = c.verdict == UNREACHABLE ? EHOSTUNREACH : ECONNREFUSED;
		return REFUSED_CALL;
	}
	if (!found) {
		count(c.kind, FAILED);
		tell(s, ctx, to, 0, &c, NOT_FOUND, limited, family);
		*error = ECONNREFUSED;
		return REFUSED_CALL;
	}
	__builtin_memcpy(backend->address, chosen.address, sizeof(backend->address));
	backend->port = chosen.port;
	backend->protocol = to->protocol;
	struct record_key key = {.socket = cookie, .backend = *backend};
	struct record r = {.original = *to, .rule = c.rule};
	if (bpf_map_update_elem(&records, &key, &r, BPF_ANY)) {
		count(c.kind, FAILED);
		tell(s, ctx, to, 0, &c, RECORD_FAILED, limited, family);
		return UNTOUCHED;
	}
	count(c.kind, RESOLVED);
	tell(s, ctx, to, backend, &c, failure, limited, family);
	return REWRITTEN;
}

/* is_exempt is whether the socket is of those that are left alone. */
static __always_inline int is_exempt(const struct bpf_sock_addr *ctx, const struct settings *s)
{
	return s->exempt_priority && ctx->sk->priority == s->exempt_priority;
}

static __always_inline struct settings *current_settings(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&config, &zero);
}

/* place4 and place6 tell what a call is about, 0 if that is not resolved. */
static __always_inline int place4(const struct bpf_sock_addr *ctx, const struct settings *s, struct place *out)
{
	out->address[2] = bpf_htonl(0xffff);
	out->address[3] = ctx->user_ip4;
	out->port = ctx->user_port;
	out->protocol = protocol_of(ctx);
	return out->protocol && s->ipv4;
}

static __always_inline int place6(const struct bpf_sock_addr *ctx, const struct settings *s, struct place *out)
{
	out->address[0] = ctx->user_ip6[0];
	out->address[1] = ctx->user_ip6[1];
	out->address[2] = ctx->user_ip6[2];
	out->address[3] = ctx->user_ip6[3];
	out->port = ctx->user_port;
	out->protocol = protocol_of(ctx);
	return out->protocol && (mapped(out->address) ? s->ipv4 : s->ipv6);
}

static __always_inline void write6(struct bpf_sock_addr *ctx, const struct place *p)
{
	ctx->user_ip6[0] = p->address[0];
	ctx->user_ip6[1] = p->address[1];
	ctx->user_ip6[2] = p->address[2];
	ctx->user_ip6[3] = p->address[3];
	ctx->user_port = p->port;
}

static __always_inline int forward4(struct bpf_sock_addr *ctx, int datagram)
{
	struct place to = {}, backend = {};
	int error = 0;
	struct settings *s = current_settings();
	if (!s || is_exempt(ctx, s) || !place4(ctx, s, &to))
		return 1;
	switch (resolve(ctx, s, &to, datagram, AF_INET, &backend, &error)) {
	case REFUSED_CALL:
		return refuse(error);
	case REWRITTEN:
		ctx->user_ip4 = backend.address[3];
		ctx->user_port = backend.port;
	default:
		return 1;
	}
}

static __always_inline int forward6(struct bpf_sock_addr *ctx, int datagram)
{
	struct place to = {}, backend = {};
	int error = 0;
	struct settings *s = current_settings();
	if (!s || is_exempt(ctx, s) || !place6(ctx, s, &to))
		return 1;
	switch (resolve(ctx, s, &to, datagram, mapped(to.address) ? AF_INET : AF_INET6, &backend, &error)) {
	case REFUSED_CALL:
		return refuse(error);
	case REWRITTEN:
		write6(ctx, &backend);
	default:
		return 1;
	}
}

/* original gives what the socket asked for when it was given this backend. */
static __always_inline struct record *original(struct bpf_sock_addr *ctx, const struct place *backend)
{
	struct record_key key = {.socket = bpf_get_socket_cookie(ctx), .backend = *backend};
	return bpf_map_lookup_elem(&records, &key);
}

static __always_inline int backward4(struct bpf_sock_addr *ctx)
{
	struct place from = {};
	struct settings *s = current_settings();
	if (!s || !place4(ctx, s, &from))
		return 1;
	struct record *r = original(ctx, &from);
	if (r) {
		ctx->user_ip4 = r->original.address[3];
		ctx->user_port = r->original.port;
	}
	return 1;
}

static __always_inline int backward6(struct bpf_sock_addr *ctx)
{
	struct place from = {};
	struct settings *s = current_settings();
	if (!s || !place6(ctx, s, &from))
		return 1;
	struct record *r = original(ctx, &from);
	if (r)
		write6(ctx, &r->original);
	return 1;
}

SEC("cgroup/connect4") int connect4(struct bpf_sock_addr *ctx) { return forward4(ctx, 0); }
SEC("cgroup/connect6") int connect6(struct bpf_sock_addr *ctx) { return forward6(ctx, 0); }
SEC("cgroup/sendmsg4") int sendmsg4(struct bpf_sock_addr *ctx) { return forward4(ctx, 1); }
SEC("cgroup/sendmsg6") int sendmsg6(struct bpf_sock_addr *ctx) { return forward6(ctx, 1); }
SEC("cgroup/recvmsg4") int recvmsg4(struct bpf_sock_addr *ctx) { return backward4(ctx); }
SEC("cgroup/recvmsg6") int recvmsg6(struct bpf_sock_addr *ctx) { return backward6(ctx); }
SEC("cgroup/getpeername4") int getpeername4(struct bpf_sock_addr *ctx) { return backward4(ctx); }
SEC("cgroup/getpeername6") int getpeername6(struct bpf_sock_addr *ctx) { return backward6(ctx); }

/* A connected socket that closes takes its record along; those of datagrams to many go as they are used least. */
SEC("cgroup/sock_release") int sock_release(struct bpf_sock *ctx)
{
	/* All are read before one is chosen: the verifier refuses a pointer into the context that the compiler computed. */
	struct record_key key = {.socket = bpf_get_socket_cookie(ctx)};
	__be32 v4 = ctx->dst_ip4;
	__be32 v6[4] = {ctx->dst_ip6[0], ctx->dst_ip6[1], ctx->dst_ip6[2], ctx->dst_ip6[3]};
	barrier();
	key.backend.port = ctx->dst_port;
	if (!key.backend.port)
		return 1;
	if (ctx->family == AF_INET) {
		key.backend.address[2] = bpf_htonl(0xffff);
		key.backend.address[3] = v4;
	} else {
		__builtin_memcpy(key.backend.address, v6, sizeof(v6));
	}
	key.backend.protocol = ctx->type == SOCK_STREAM ? TCP : UDP;
	bpf_map_delete_elem(&records, &key);
	return 1;
}

char _license[] SEC("license") = "Apache-2.0";
