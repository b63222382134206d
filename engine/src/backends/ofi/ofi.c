/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfabric: one reliable datagram endpoint over any provider. Nothing here knows a provider by name;
 * memory modes, keys, addressing and limits follow what fi_getinfo() demands.
 */
#include "ofi.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>

#include "backends/registry.h"
#include "base/message.h"

/*
 * How much later than the peer's word on the control connection its greeting may come:
 * a round trip and some scheduling.
 */
#define GREETING_NS NSEC_PER_SEC

/* Whether a write's completion is all that is ever heard of it. */
static bool is_unseen_write(const struct job *job, bool can_notify) {
	if (job->op != OP_WRITE)
		return false;
	if (job->kind != KIND_LATENCY || job->definition == DEFINITION_COMPLETION)
		return true;
	return job->definition == DEFINITION_AUTO && !can_notify;
}

/*
 * Must a completion say that the payload has arrived? For a write, nobody else does. A send is answered (ping-pong),
 * or its receiver says when it has everything: there the provider's own level is enough,
 * and spares small messages an acknowledgement each (over tcp;ofi_rxm, half of their rate).
 */
static bool wants_delivery(const struct ofi_kind *kind, const struct job *job, bool can_notify) {
	return kind->asks_delivery && is_unseen_write(job, can_notify);
}

/*
 * The slot travels as remote data: 4 bytes hold every slot number. CXI turns such writes into unrestricted ones,
 * which take another, slower way through the NIC: there the plain write is the default,
 * and half_round_trip must be asked for.
 */
static bool offers_notify(const struct job *job, const struct fi_info *info) {
	return job->op == OP_WRITE && !job_has_lanes(job) &&
	       info->domain_attr->cq_data_size >= sizeof(uint32_t) &&
	       !(info->ep_attr->protocol == FI_PROTO_CXI && job->definition != DEFINITION_HALF_ROUND_TRIP);
}

static int choose_info(struct ofi_session *o, const struct open_arguments *a) {
	bool delivery = wants_delivery(o->kind, a->job, true);
	int r;

	r = ofi_choose(o->kind, a, delivery ? FI_DELIVERY_COMPLETE : 0, &o->info);
	if (r < 0)
		return r;
	o->session.can_notify = offers_notify(a->job, o->info);

	/* Only now is it known that this provider cannot notify. */
	if (!delivery && wants_delivery(o->kind, a->job, o->session.can_notify)) {
		fi_freeinfo(o->info);
		o->info = NULL;
		return ofi_choose(o->kind, a, FI_DELIVERY_COMPLETE, &o->info);
	}
	return 0;
}

static enum completion_level level_of(const struct ofi_session *o) {
	/* Reads and atomics are complete when their result is here. */
	if (o->job->op != OP_SEND && o->job->op != OP_WRITE)
		return LEVEL_DELIVERY;
	return o->info->tx_attr->op_flags & FI_DELIVERY_COMPLETE ? LEVEL_DELIVERY : LEVEL_TRANSMIT;
}

static int check_limits(const struct ofi_session *o) {
	uint64_t largest = job_largest_size(o->job);

	if (largest > o->info->ep_attr->max_msg_size)
		return failure(-EMSGSIZE, EXIT_HOST,
			       "%s: provider %s sends at most %zu bytes in one message; lower --size", o->job->backend,
			       o->session.provider, o->info->ep_attr->max_msg_size);
	return 0;
}

static int open_queue(struct ofi_session *o) {
	bool event = o->job->completion == COMPLETION_EVENT;
	struct fi_cq_attr attr = {
		.size = o->info->tx_attr->size + o->info->rx_attr->size,
		.format = o->notified ? FI_CQ_FORMAT_DATA : FI_CQ_FORMAT_CONTEXT,
		.wait_obj = event ? FI_WAIT_FD : FI_WAIT_NONE,
	};
	int r;

	r = fi_cq_open(o->domain, &attr, &o->cq, NULL);
	if (r == 0 && event)
		r = fi_control(&o->cq->fid, FI_GETWAIT, &o->wait_fd);
	if (r && event)
		return failure(-EOPNOTSUPP, EXIT_HOST,
			       "%s: provider %s cannot sleep for a completion (%s): use --completion busy%s",
			       o->job->backend, o->session.provider, fi_strerror(-r),
			       o->kind->provider ? "" : ", or another provider");
	return r ? ofi_open_failed(o, "open a completion queue", r) : 0;
}

/* The steps at which a provider looks at authorization keys: its kind may know why it refuses. */
static int refused(const struct ofi_session *o, const char *what, int error) {
	int r = o->kind->explain_refusal ? o->kind->explain_refusal(o, -error) : 0;

	return r < 0 ? r : ofi_open_failed(o, what, error);
}

static int open_endpoint(struct ofi_session *o) {
	struct fi_av_attr av = {
		/* Both kinds answer with an fi_addr_t to be used as it is; 2.x knows tables only. */
		.type = o->info->domain_attr->av_type != FI_AV_UNSPEC ? o->info->domain_attr->av_type : FI_AV_TABLE,
		.count = 1,
	};
	int r;

	/* Some layers (ofi_rxm) answer with a stricter model than was asked for; the weaker one spares their locks. */
	o->info->domain_attr->threading = FI_THREAD_DOMAIN;

	r = fi_fabric(o->info->fabric_attr, &o->fabric, NULL);
	if (r)
		return ofi_open_failed(o, "open the fabric", r);
	r = fi_domain(o->fabric, o->info, &o->domain, NULL);
	if (r)
		return refused(o, "open the domain", r);
	r = fi_av_open(o->domain, &av, &o->av, NULL);
	if (r)
		return ofi_open_failed(o, "open an address vector", r);
	r = open_queue(o);
	if (r < 0)
		return r;
	r = fi_endpoint(o->domain, o->info, &o->ep, NULL);
	if (r)
		return ofi_open_failed(o, "open an endpoint", r);
	r = fi_ep_bind(o->ep, &o->av->fid, 0);
	if (r == 0)
		r = fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV);
	if (r)
		return ofi_open_failed(o, "bind the endpoint", r);
	r = fi_enable(o->ep);
	return r ? refused(o, "enable the endpoint", r) : 0;
}

static int allocate(struct ofi_session *o) {
	o->contexts = calloc(2 * (size_t) o->slots + 2, sizeof(*o->contexts));
	o->places = calloc(o->slots, sizeof(*o->places));
	if (!o->contexts || !o->places)
		return failure(-ENOMEM, EXIT_HOST, "%s: out of memory for %u slots; lower --outstanding",
			       o->job->backend, o->slots);
	return 0;
}

static void describe(struct ofi_session *o) {
	uint8_t name[OFI_NAME_MAX];
	size_t length = sizeof(name);
	struct device d;

	if (o->ep && fi_getname(&o->ep->fid, name, &length) == 0) {
		ofi_facts(o->info, name, length, &d);
		if (o->kind->know)
			o->kind->know(o, name, length);
	} else
		ofi_facts(o->info, o->info->src_addr, o->info->src_addrlen, &d);
	memcpy(o->session.provider, d.provider, sizeof(d.provider));
	memcpy(o->session.device, d.name, sizeof(d.name));
	memcpy(o->session.address, d.address, sizeof(d.address));
	memcpy(o->session.layer, d.layer, sizeof(d.layer));
	o->session.simulated = is_simulated_name(d.name);
	o->session.mtu = d.mtu;
	o->session.rate_gbit_s = d.rate_gbit_s;
}

static int open_all(struct ofi_session *o, const struct open_arguments *a) {
	const struct job *job = a->job;
	bool ping_pong;
	int r;

	r = choose_info(o, a);
	if (r < 0)
		return r;
	describe(o); /* first: messages name provider and device */
	r = o->kind->fit ? o->kind->fit(o) : 0;
	if (r == 0)
		r = check_limits(o);
	if (r < 0)
		return r;

	o->session.level = level_of(o);
	o->messages = job->op == OP_SEND;
	ping_pong = job->kind == KIND_LATENCY &&
		(o->messages || (job->op == OP_WRITE && !is_unseen_write(job, o->session.can_notify)));
	if (ping_pong && o->info->tx_attr->inject_size > 0 && !job->cxi.no_idc && !job_sends_from_gpu(job)) {
		/* Elsewhere it is the completion that is counted, and an injected message has none. */
		o->inject_below = o->info->tx_attr->inject_size + 1;
		o->session.inline_bytes = (uint32_t) MIN(o->info->tx_attr->inject_size, (size_t) UINT32_MAX);
	}
	o->notified = o->session.can_notify;
	o->message_flags = FI_COMPLETION | (o->info->tx_attr->op_flags & FI_DELIVERY_COMPLETE);
	o->feeds = o->notified && ((o->info->mode | o->info->rx_attr->mode) & FI_RX_CQ_DATA);

	r = allocate(o);
	if (r == 0)
		r = ofi_rate_open(o, a->channel);
	if (r < 0)
		return r;
	r = open_endpoint(o);
	if (r < 0)
		return r;
	describe(o); /* again: now the endpoint has its address */
	r = op_is_atomic(job->op) ? ofi_atomic_open(o) : 0;
	if (r < 0)
		return r;
	r = ofi_memory_open(o);
	return r < 0 ? r : ofi_memory_enable(o);
}

int ofi_open_as(const struct ofi_kind *kind, const struct open_arguments *arguments, struct session **ret) {
	struct ofi_session *o = calloc(1, kind->session_size);
	int r;

	if (!o)
		return failure(-ENOMEM, EXIT_HOST, "%s: out of memory", arguments->job->backend);
	o->kind = kind;
	o->first_key = 1; /* below 100: CXI serves such keys without a match list (fi_cxi(7), optimized MRs) */
	o->session.backend = kind->backend;
	o->session.connection = "rdm";
	o->job = arguments->job;
	o->role = arguments->role;
	o->arena = *arguments->arena;
	o->slots = arguments->arena->slots;
	o->wait_fd = -1;
	o->wake_fd = arguments->wake_fd;

	r = ofi_library_load();
	if (r == 0)
		r = open_all(o, arguments);
	if (r < 0) {
		(void) ofi_close(&o->session);
		return r;
	}
	*ret = &o->session;
	return 0;
}

int ofi_local_address(struct session *s, struct address *ret) {
	return ofi_address_write(ofi_session(s), ret);
}

/*
 * The peer has nothing to say while both ends connect, unless it is done (its greeting then arrives soon) or gives up.
 */
static int check_peer(const struct ofi_session *o, uint64_t now, uint64_t *heard) {
	struct pollfd p = { .fd = o->wake_fd, .events = POLLIN };

	if (*heard == 0 && poll(&p, 1, 0) > 0)
		*heard = now;
	if (*heard == 0 || now - *heard < GREETING_NS)
		return 0;
	return failure(-ECONNABORTED, EXIT_PEER, "%s, provider %s, device %s: the peer gave up while the two ends were "
		       "connecting; its own messages say why", o->job->backend, o->session.provider, o->session.device);
}

/* One greeting's half: started until the provider takes it, then driven until its completion is there. */
static int greet(struct ofi_session *o, bool send, uint64_t deadline) {
	struct fi_context2 *context = o->contexts + 2 * (size_t) o->slots + !send;
	uint8_t *buffer = o->scratch + (send ? 0 : OFI_HELLO_BYTES);
	struct fi_cq_data_entry entry;  /* the longest of the formats used */
	uint64_t now, heard = 0;
	bool started = false;
	int e;

	for (;;) {
		ssize_t r = 0;

		if (!started) {
			if (send)
				r = fi_send(o->ep, buffer, OFI_HELLO_BYTES, o->scratch_desc, o->peer, context);
			else
				r = fi_recv(o->ep, buffer, OFI_HELLO_BYTES, o->scratch_desc, FI_ADDR_UNSPEC, context);
			started = r == 0;
			if (r && r != -FI_EAGAIN)
				return ofi_failed(o, "reaching the peer", (int) r, NULL);
		}
		r = fi_cq_read(o->cq, &entry, 1);
		if (r == 1 && entry.op_context == context)
			return 0;
		if (r < 0 && r != -FI_EAGAIN)
			return ofi_cq_failed(o, r);
		now = monotonic_ns();
		if (now > deadline)
			return ofi_failed(o, "reaching the peer", FI_ETIMEDOUT, NULL);
		e = check_peer(o, now, &heard);
		if (e < 0)
			return e;
		(void) sched_yield(); /* both ends may share one CPU here */
	}
}

/*
 * shm's endpoint is a file of 16 MiB and more in /dev/shm, which a killed process leaves behind.
 * Once both ends have mapped it nobody opens it by name again, so that the name can go now;
 * the provider's own removal at the end finds nothing.
 */
static void unlink_shared_memory(const struct ofi_session *o) {
	const char *scheme = "fi_shm://", *name = o->session.address;

	if (o->info->ep_attr->protocol == FI_PROTO_SHM && strncmp(name, scheme, strlen(scheme)) == 0)
		(void) shm_unlink(name + strlen(scheme));
}

/*
 * Datagram endpoints connect, if at all, with their first message. A greeting each way does that now,
 * within the deadline and with a clear message, instead of in the first measurement. The client begins:
 * two ends that connect to each other at the same moment must first find out which connection to drop.
 */
int ofi_connect(struct session *s, const struct address *peer) {
	struct ofi_session *o = ofi_session(s);
	uint64_t deadline = monotonic_ns() + o->job->timeout_ns;
	bool client = o->role == ROLE_CLIENT;
	int r;

	r = ofi_address_read(o, peer);
	if (r < 0)
		return r;
	r = greet(o, client, deadline);
	if (r == 0)
		r = greet(o, !client, deadline);
	if (r == 0)
		unlink_shared_memory(o);
	if (r == 0)
		r = ofi_rate_begin(o);
	o->broken = r < 0;
	return r;
}

static void close_fid(struct fid *fid) {
	if (fid)
		(void) fi_close(fid);
}

static void close_libfabric(struct ofi_session *o) {
	/* A region of an endpoint goes before it; any other goes after, since posted receives still point into it. */
	if (o->info && (o->info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		ofi_memory_close(o);
	close_fid(o->ep ? &o->ep->fid : NULL);
	ofi_memory_close(o);
	close_fid(o->cq ? &o->cq->fid : NULL);
	close_fid(o->av ? &o->av->fid : NULL);
	close_fid(o->domain ? &o->domain->fid : NULL);
	close_fid(o->fabric ? &o->fabric->fid : NULL);
	fi_freeinfo(o->info);
}

/*
 * With operations under way, ofi_rxm (1.17, over tcp) follows freed memory when its endpoint is closed,
 * and the crash would take the exit code with it. A measurement's process ends right after:
 * then the kernel cleans up better. Not so for shared memory, whose files outlive the process.
 */
static struct ofi_session *volatile abandoned;  /* still reachable, so no leak; volatile, or nobody would store it */

struct session *ofi_close(struct session *s) {
	struct ofi_session *o = ofi_session(s);

	if (!o)
		return NULL;
	if ((o->broken || o->under_way > 0) && !ofi_is_host_local(o->info)) {
		abandoned = o;
		return NULL;
	}
	close_libfabric(o);
	ofi_scratch_close(o);
	ofi_rate_close(o);
	free(o->contexts);
	free(o->places);
	if (o->kind->forget)
		o->kind->forget(o);
	free(o);
	return NULL;
}

static void ask(const struct job *job, struct fi_info *hints) {
	hints->domain_attr->tclass = hints->tx_attr->tclass = ofi_class(job->ofi.fabric_class);
}

/* Only some providers heed a class of traffic, and the others do not say that they pass it over. */
static int fit(struct ofi_session *o) {
	uint32_t wanted = ofi_class(o->job->ofi.fabric_class);

	if (wanted == FI_TC_UNSPEC || o->info->domain_attr->tclass == wanted || o->info->tx_attr->tclass == wanted)
		return 0;
	return failure(-EOPNOTSUPP, EXIT_HOST,
		       "ofi: provider %s has no --traffic-class %s; omit it, or choose another --provider",
		       o->session.provider, fabric_class_name((int) o->job->ofi.fabric_class));
}

static const struct ofi_kind kind_ofi = {
	.backend = &backend_ofi,
	.session_size = sizeof(struct ofi_session),
	.asks_delivery = true,
	.mr_modes = OFI_MR_MODES,
	.ask = ask,
	.fit = fit,
};

static int ofi_resolve(struct job *job, const struct open_arguments *arguments) {
	struct open_arguments a = *arguments;
	struct fi_info *info;
	int r;

	a.job = job;
	r = ofi_library_load();
	if (r == 0)
		r = ofi_choose(&kind_ofi, &a, 0, &info);
	if (r < 0)
		return r;
	r = copy_string(job->provider, sizeof(job->provider), info->fabric_attr->prov_name);
	if (r < 0)
		r = failure(r, EXIT_INTERNAL, "ofi: the provider's name is too long: %s", info->fabric_attr->prov_name);
	fi_freeinfo(info);
	return r;
}

static int ofi_open(const struct open_arguments *arguments, struct session **ret) {
	return ofi_open_as(&kind_ofi, arguments, ret);
}

const struct backend backend_ofi = {
	.facts = &backend_facts[BACKEND_OFI],
	.version = BACKEND_VERSION,
	.probe = ofi_probe,
	.resolve = ofi_resolve,
	.open = ofi_open,
	.local_address = ofi_local_address,
	.connect = ofi_connect,
	.lanes = &(const struct lane_hooks) { .place = ofi_place, .post_list = ofi_post_list, .arm = ofi_arm },
	.post = ofi_post,
	.post_receive = ofi_post_receive,
	.poll = ofi_poll,
	.wait = ofi_wait,
	.close = ofi_close,
};
