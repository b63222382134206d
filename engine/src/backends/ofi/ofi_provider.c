/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of provider, domain and source address.
 * What the job needs is asked of libfabric as capabilities; what it answers is ranked by the kind of path.
 * Names only keep back providers that could do the job but should not be a default.
 */
#include "ofi.h"

#include <netdb.h>
#include <stdio.h>

#include "base/message.h"
#include "host/netdev.h"

struct wish {
	const struct ofi_kind *kind;
	const struct job *job;
	const char *provider;           /* NULL: any */
	const char *device;             /* NULL: any */
	uint64_t caps;
	uint64_t op_flags;
	uint64_t order;
	size_t queue;                   /* messages in flight each way; 0: whatever there is */
	bool gpu;                       /* its memory is to be reached */
	bool sleeps;                    /* completions are waited for; shm's queues cannot, up to 2.1 at least */
};

/*
 * RANK_NAMED are taken only when named:
 *   sockets  deprecated, several times slower than tcp, kept by libfabric for debugging;
 *   udp      (ofi_rxd) loses and repeats in software: its figures tell about ofi_rxd, not about the network;
 *   net      1.17's trial version of what became tcp in 1.18: figures under this name could never be compared later;
 *   sm2      libfabric 2's trial successor of shm.
 */
enum rank {
	RANK_NEVER = -1,
	RANK_NAMED,
	RANK_TCP,
	RANK_HOST,
	RANK_FABRIC,
};

static enum rank rank_of(const struct fi_info *info) {
	switch (info->ep_attr->protocol) {
	case FI_PROTO_SHM:
		return RANK_HOST;
	case FI_PROTO_SOCK_TCP:
	case FI_PROTO_UDP:
		return RANK_NAMED;
	case FI_PROTO_XNET:
		return ofi_core_is(info, "tcp") ? RANK_TCP : RANK_NAMED;
	case FI_PROTO_RXM:
		if (ofi_core_is(info, "tcp"))
			return RANK_TCP;
		break;
	case FI_PROTO_PSMX:
	case FI_PROTO_PSMX2:
	case FI_PROTO_PSMX3:
	case FI_PROTO_GNI:
	case FI_PROTO_OPX:
	case FI_PROTO_EFA:
	case FI_PROTO_CXI: /* device protocols: some of these fill in no NIC */
		return RANK_FABRIC;
	default:
		break;
	}
	return info->nic ? RANK_FABRIC : RANK_NAMED;
}

bool ofi_is_host_local(const struct fi_info *info) {
	return rank_of(info) == RANK_HOST || ofi_core_is(info, "sm2");
}

bool ofi_device_is(const struct fi_info *info, const char *name) {
	const char *own = info->domain_attr->name;

	return own && (streq(own, name) || (is_simulated_name(own) && streq(own + strlen(SIMULATED_MARK), name)));
}

static uint64_t order_for(const struct job *job) {
	/* A send must arrive in the buffer that was lent for it. */
	if (job->op == OP_SEND)
		return FI_ORDER_SAS;
	if (!job->cxi.unrestricted || job->op == OP_READ)
		return 0;
	return job->op == OP_WRITE ? FI_ORDER_RMA_WAW : FI_ORDER_ATOMIC_WAW;
}

static struct wish wish_for(const struct ofi_kind *kind, const struct job *job, enum role role, uint64_t op_flags,
			    uint32_t window) {
	const char *device = role == ROLE_CLIENT ? job->device : job->server_device;

	return (struct wish) {
		.kind = kind,
		.job = job,
		.provider = kind->provider ? kind->provider : job->provider[0] != '\0' ? job->provider : NULL,
		.device = device[0] != '\0' ? device : NULL,
		/* FI_MSG always: the greeting that proves the path is a message. */
		.caps = FI_MSG | (op_is_atomic(job->op) ? FI_ATOMIC : job->op == OP_SEND ? 0 : FI_RMA),
		.op_flags = op_flags,
		.order = order_for(job),
		.queue = MAX(MAX(MAX(job->outstanding, ofi_rate_receives(job, role)), job_has_lanes(job) ? 0 : window) +
			     OFI_QUEUE_SPARE, (uint32_t) OFI_QUEUE_MIN),
		.gpu = job_uses_gpu(job) && !job->bounce,
		.sleeps = job->completion == COMPLETION_EVENT,
	};
}

static struct fi_info *make_hints(const struct wish *w) {
	struct fi_info *h = fi_allocinfo();

	if (!h)
		return NULL;
	h->ep_attr->type = FI_EP_RDM;
	h->caps = w->caps;
	h->mode = OFI_MODES;
	h->domain_attr->mr_mode = w->kind->mr_modes;
	h->domain_attr->threading = FI_THREAD_DOMAIN;   /* one thread: no locks */
	/* Both ends poll all the time: no helper thread of the provider shall take a CPU, or a lock, from them. */
	h->domain_attr->control_progress = h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->tx_attr->op_flags = w->op_flags;
	h->tx_attr->msg_order = h->rx_attr->msg_order = w->order;
	h->tx_attr->size = h->rx_attr->size = w->queue;
	if (w->gpu)
		ofi_gpu_hints(h);
	if (w->kind->ask)
		w->kind->ask(w->job, h);
	/* The device is left to best_of(): the layers (ofi_rxm) and shm pass over a domain's name in the hints. */
	return h;
}

/* Answers NULL where there is none; libfabric's other errors mean the same here. */
static struct fi_info *query(const struct wish *w, const char *source) {
	struct fi_info *hints = make_hints(w), *list = NULL;

	if (!hints)
		return NULL;
	hints->fabric_attr->prov_name = (char *) (uintptr_t) w->provider; /* only lent */
	if (fi_getinfo(OFI_VERSION, source, NULL, source ? FI_SOURCE | FI_NUMERICHOST : 0, hints, &list) != 0)
		list = NULL;
	hints->fabric_attr->prov_name = NULL;
	fi_freeinfo(hints);
	return list;
}

/* "tcp" stands for "tcp" and for "tcp" under a layer, as it does for fi_info -p. */
static bool name_matches(const struct wish *w, const struct fi_info *info) {
	return !w->provider || streq(w->provider, info->fabric_attr->prov_name) ||
	       (!strchr(w->provider, ';') && ofi_core_is(info, w->provider));
}

static bool device_matches(const struct wish *w, const struct fi_info *info) {
	return !w->device || ofi_device_is(info, w->device);
}

static const struct sockaddr_in *as_ipv4(const struct sockaddr_storage *a, struct sockaddr_in *buffer) {
	const struct sockaddr_in6 *v6 = (const void *) a;

	if (a->ss_family == AF_INET)
		return (const void *) a;
	if (a->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		return NULL;
	*buffer = (struct sockaddr_in) { .sin_family = AF_INET };
	memcpy(&buffer->sin_addr, v6->sin6_addr.s6_addr + 12, sizeof(buffer->sin_addr));
	return buffer;
}

/* 2: the control connection's own address; 1: its family; 0: another one, or no IP address at all. */
static int nearness(const struct fi_info *info, const struct sockaddr_storage *local) {
	const struct sockaddr *source = info->src_addr;
	struct sockaddr_in buffer;
	const struct sockaddr_in *v4 = as_ipv4(local, &buffer);

	if (!source || !ofi_is_ip(info) || source->sa_family != (v4 ? AF_INET : local->ss_family))
		return 0;
	if (v4)
		return 1 + (((const struct sockaddr_in *) info->src_addr)->sin_addr.s_addr == v4->sin_addr.s_addr);
	return 1 + (memcmp(&((const struct sockaddr_in6 *) info->src_addr)->sin6_addr,
			   &((const struct sockaddr_in6 *) local)->sin6_addr, sizeof(struct in6_addr)) == 0);
}

static bool link_is_down(const struct fi_info *info) {
	return info->nic && info->nic->link_attr && info->nic->link_attr->state == FI_LINK_DOWN;
}

/* libfabric's own order breaks ties: it lists what it prefers first. */
static struct fi_info *best_of(struct fi_info *list, const struct wish *w, const struct open_arguments *a) {
	struct fi_info *best = NULL;
	int best_score = 0;

	for (struct fi_info *i = list; i; i = i->next) {
		enum rank rank = rank_of(i);
		int score;

		if (!name_matches(w, i) || !device_matches(w, i) || (rank == RANK_HOST && !a->same_host))
			continue;
		if (!w->provider && (rank == RANK_NAMED || (rank == RANK_HOST && w->sleeps)))
			continue;
		if ((!w->provider || w->kind->provider) && !w->device && link_is_down(i))
			continue;
		score = 1 + (w->provider ? 0 : rank * 4) + nearness(i, a->local);
		if (score > best_score) {
			best = i;
			best_score = score;
		}
	}
	return best;
}

static bool source_text(const struct sockaddr_storage *local, char *ret, size_t size) {
	struct sockaddr_in buffer;
	const struct sockaddr_in *v4 = as_ipv4(local, &buffer);
	const struct sockaddr *sa = v4 ? (const struct sockaddr *) v4 : (const struct sockaddr *) local;
	socklen_t length = v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

	return (v4 || local->ss_family == AF_INET6) &&
	       getnameinfo(sa, length, ret, (socklen_t) size, NULL, 0, NI_NUMERICHOST) == 0;
}

/*
 * An IP provider lists each interface's first address only; the control connection may use another (127.0.0.2).
 * Asked for that source, it binds to it. A provider whose device is not on that network has no answer,
 * and keeps the first choice.
 */
static struct fi_info *rebind(const struct wish *w, const struct fi_info *chosen, const struct open_arguments *a) {
	struct wish exact = *w;
	struct fi_info *list, *found;
	char source[NI_MAXHOST];
	struct netdev n;

	if (!ofi_is_ip(chosen) || nearness(chosen, a->local) == 2 || !source_text(a->local, source, sizeof(source)))
		return NULL;
	if (w->device && (netdev_of_address(a->local, &n) < 0 || !streq(n.name, w->device)))
		return NULL;
	exact.device = NULL; /* with a source address, the domain is not named after the interface */
	exact.provider = chosen->fabric_attr->prov_name;
	list = query(&exact, source);
	found = list ? best_of(list, &exact, a) : NULL;
	if (found && nearness(found, a->local) == 2)
		found = fi_dupinfo(found);
	else
		found = NULL;
	fi_freeinfo(list);
	return found;
}

static struct fi_info *choose(const struct wish *w, const struct open_arguments *a) {
	struct fi_info *list = query(w, NULL), *best, *ret = NULL;

	best = list ? best_of(list, w, a) : NULL;
	if (!best && w->provider && !strchr(w->provider, ';')) {
		/* libfabric's own filter may have been narrower than ours */
		struct wish any = *w;

		any.provider = NULL;
		fi_freeinfo(list);
		list = query(&any, NULL);
		best = list ? best_of(list, w, a) : NULL;
	}
	if (best) {
		ret = rebind(w, best, a);
		if (!ret)
			ret = fi_dupinfo(best);
	}
	fi_freeinfo(list);
	return ret;
}

/* "tcp;ofi_rxm, shm": each name once, as far as the text has room. */
static void list_names(const struct wish *w, bool devices, char *ret, size_t size) {
	struct fi_info *list = query(w, NULL);
	size_t n = 0;

	ret[0] = '\0';
	for (struct fi_info *i = list; i; i = i->next) {
		const char *name = devices ? i->domain_attr->name : i->fabric_attr->prov_name;
		bool seen = !name || !name_matches(w, i);

		for (struct fi_info *j = list; j != i && !seen; j = j->next)
			seen = name_matches(w, j) &&
			streq(name, devices ? j->domain_attr->name : j->fabric_attr->prov_name);
		if (seen || n + strlen(name) + 3 > size)
			continue;
		n += (size_t) snprintf(ret + n, size - n, "%s%s", n ? ", " : "", name);
	}
	fi_freeinfo(list);
	if (n == 0)
		(void) snprintf(ret, size, "none");
}

static bool exists(const struct wish *w, const struct open_arguments *a, size_t *ret_queue) {
	struct fi_info *info = choose(w, a);

	if (!info)
		return false;
	if (ret_queue)
		*ret_queue = MIN(info->tx_attr->size, info->rx_attr->size);
	fi_freeinfo(info);
	return true;
}

/* Takes one wish back after the other; the one whose loss helps is the reason. */
static int explain_absence(const struct job *job, struct wish w, const struct open_arguments *a) {
	const char *name = w.provider ? w.provider : "any", *backend = job->backend;
	char names[256];
	size_t queue;
	int r;

	r = w.kind->explain_absence ? w.kind->explain_absence(a) : 0;
	if (r < 0)
		return r;

	if (w.provider && streq(w.provider, "shm") && !a->same_host)
		return failure(-EOPNOTSUPP, EXIT_HOST,
			       "%s: provider shm works within one host only; choose another --provider, or none",
			       backend);

	if (w.gpu) {
		w.gpu = false;
		if (exists(&w, a, NULL))
			return ofi_gpu_absent(job, name);
	}
	w.queue = 0;
	if (exists(&w, a, &queue))
		return failure(-EOPNOTSUPP, EXIT_HOST, "%s: provider %s does not queue --outstanding %u messages (by "
			       "itself it queues %zu); lower it", backend, name, job->outstanding, queue);
	if (w.device) {
		const char *device = w.device;

		w.device = NULL;
		list_names(&w, true, names, sizeof(names));
		if (exists(&w, a, NULL))
			return failure(-ENODEV, EXIT_HOST, "%s: provider %s has no device '%s' here; it has: %s",
				       backend, name, device, names);
	}
	w.order = 0;
	if (exists(&w, a, NULL))
		return failure(-EOPNOTSUPP, EXIT_HOST,
			       "%s: provider %s does not keep %s in order, which %s needs; leave that out", backend,
			       name, job->op == OP_SEND ? "sends" : op_name((int) job->op),
			       job->op == OP_SEND ? "--op send" : "--unrestricted");

	if (w.provider) {
		struct wish any = w, other = w;

		any.provider = other.provider = NULL;
		other.caps = w.caps;
		w.caps = any.caps = FI_MSG;
		list_names(exists(&w, a, NULL) ? &other : &any, false, names, sizeof(names));
		if (exists(&w, a, NULL))
			return failure(-EOPNOTSUPP, EXIT_HOST,
				       "%s: provider %s has no --op %s on this host; these have: %s", backend, name,
				       op_name(job->op), names);
		return failure(-ENODEV, EXIT_HOST, "%s: no provider '%s' on this host (unknown, without a device, "
			       "or without datagram endpoints); there are: %s", backend, name, names);
	}
	list_names(&w, false, names, sizeof(names));
	return failure(-ENODEV, EXIT_HOST, "%s: libfabric finds no default provider for --op %s on this host; "
		       "to be named with --provider: %s", backend, op_name(job->op), names);
}

int ofi_choose(const struct ofi_kind *kind, const struct open_arguments *arguments, uint64_t op_flags,
	       struct fi_info **ret) {
	struct wish w = wish_for(kind, arguments->job, arguments->role, op_flags,
				 arguments->arena ? arguments->arena->window : 0);
	struct fi_info *info = choose(&w, arguments);

	/* Not every provider has every completion level: take the default one, and let it be recorded. */
	if (!info && op_flags) {
		w.op_flags = 0;
		info = choose(&w, arguments);
	}
	if (!info)
		return explain_absence(arguments->job, w, arguments);
	*ret = info;
	return 0;
}

uint32_t ofi_class(enum fabric_class fabric_class) {
	static const uint32_t numbers[FABRIC_CLASS_MAX] = {
		[FABRIC_CLASS_DEFAULT] = FI_TC_UNSPEC,
		[FABRIC_CLASS_BEST_EFFORT] = FI_TC_BEST_EFFORT,
		[FABRIC_CLASS_LOW_LATENCY] = FI_TC_LOW_LATENCY,
		[FABRIC_CLASS_DEDICATED_ACCESS] = FI_TC_DEDICATED_ACCESS,
		[FABRIC_CLASS_BULK_DATA] = FI_TC_BULK_DATA,
		[FABRIC_CLASS_NETWORK_CTRL] = FI_TC_NETWORK_CTRL,
	};

	return numbers[fabric_class];
}
