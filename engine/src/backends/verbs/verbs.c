/* SPDX-License-Identifier: Apache-2.0 */
/* libibverbs: InfiniBand and RoCE devices, queue pairs of the connections RC, UC and UD. */
#include "verbs.h"

#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/random.h>

#include "backends/registry.h"
#include "base/message.h"
#include "verbs_sysfs.h"

/* With verification each slot has memory of its own: how much of it deeper receive queues may take. */
#define DEEP_BYTES (UINT64_C(64) << 20)

static struct session *verbs_close(struct session *s);

/*
 * Receives beside those that the sender has under way: it may send again as soon as the device has taken a message,
 * before the program has seen it. A receiver that is not ready costs a reliable connection a pause,
 * and an unreliable one the message.
 */
static uint32_t verbs_slots(const struct job *job) {
	uint64_t wanted = job_under_way(job), turn = (uint64_t) job_run(job) * job->queue_pairs, deep;

	if (job->kind == KIND_LATENCY)
		return 2;
	if (op_takes_receive(job->op)) {
		deep = MIN((uint64_t) VERBS_RECEIVES * job->queue_pairs, (uint64_t) VERBS_RECEIVES_ALL);
		wanted *= job->verbs.srq && job->op == OP_WRITE_IMM ? 3 : 2; /* run_receives() */
		if (!job->verify || deep * job_largest_size(job) <= DEEP_BYTES)
			wanted = MAX(wanted, deep);
	}
	/*
	 * Whole turns of all queue pairs (job_channel()),
	 * which are no longer than the messages under way (job_validate()).
	 */
	return (uint32_t) ((wanted + turn - 1) / turn * turn);
}

static int check_device(const struct verbs_session *v) {
	const struct verbs_device *d = &v->device;
	const struct job *job = v->job;
	uint64_t largest = job_largest_size(job);
	uint32_t mtu = verbs_mtu_bytes(d->port_attr.active_mtu);

	if (largest > d->port_attr.max_msg_sz)
		return failure(-EMSGSIZE, EXIT_HOST,
			       "verbs, device %s: --size %llu: it sends at most %u bytes in one message; lower it",
			       d->name, (unsigned long long) largest, d->port_attr.max_msg_sz);
	if (v->datagrams && largest > mtu)
		return failure(-EMSGSIZE, EXIT_HOST, "verbs, device %s: --size %llu is too large; "
			       "with --connection ud a message is one packet, and port %u has an MTU of %u bytes; "
			       "lower it, or raise the MTU of interface %s", d->name, (unsigned long long) largest,
			       d->port, mtu, d->netdev[0] ? d->netdev : "(none)");
	if (op_is_atomic(job->op) && d->attr.atomic_cap == IBV_ATOMIC_NONE)
		return failure(-EOPNOTSUPP, EXIT_HOST,
			       "verbs, device %s: it has no atomic operations; choose another --device or --op",
			       d->name);
	return 0;
}

/* Whether the target can see a write arrive, by polling the last byte for it. */
static void choose_notification(struct session *s, const struct job *job) {
	if (job->op != OP_WRITE || job->kind != KIND_LATENCY || job->definition == DEFINITION_COMPLETION)
		return;
	s->no_notify = job_unseen_write(job);
	s->can_notify = s->stamps = !s->no_notify;
}

static void describe(struct verbs_session *v) {
	struct session *s = &v->session;
	const struct verbs_device *d = &v->device;

	(void) snprintf(s->device, sizeof(s->device), "%s", d->name);
	(void) snprintf(s->address, sizeof(s->address), "%s", d->address);
	(void) snprintf(s->layer, sizeof(s->layer), "%s",
			d->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "ethernet" : "infiniband");
	s->mtu = verbs_mtu_bytes(d->port_attr.active_mtu);
	s->rate_gbit_s = d->rate_gbit_s;
	v->sl = job_lane(v->job, v->job->verbs.sl);
	v->traffic_class = job_lane(v->job, v->job->verbs.traffic_class);
	verbs_sysfs_driver(d->context->device, s->driver);
	s->connection = connection_name((int) v->job->verbs.connection);
	s->lossy = v->lossy;
	s->cheap_poll = true;
	s->passive = !v->counts || !op_takes_receive(v->job->op);
	/*
	 * A send or write of a reliable connection is complete when the peer's device has acknowledged it,
	 * others when they have left.
	 */
	s->level = v->job->op == OP_READ || v->atomics ? LEVEL_DELIVERY : LEVEL_TRANSMIT;
	choose_notification(s, v->job);
}

static int allocate(struct verbs_session *v) {
	if (!verbs_has_moves(v)) {
		v->requests = calloc(v->slots, sizeof(*v->requests));
		v->places = calloc(v->slots, sizeof(*v->places));
	}
	v->channels = calloc(v->slots, sizeof(*v->channels));
	if (!v->channels || (!verbs_has_moves(v) && !(v->requests && v->places)))
		return failure(-ENOMEM, EXIT_HOST, "verbs: out of memory for %u slots; lower --outstanding", v->slots);
	for (uint32_t slot = 0; slot < v->slots; slot++)
		v->channels[slot] = (uint16_t) job_channel(v->job, slot);
	return 0;
}

/* Numbers that a stray packet of an earlier connection does not carry. */
static int draw_numbers(struct verbs_session *v) {
	uint32_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return failure(-EIO, EXIT_INTERNAL, "verbs: no random numbers: %s", strerror(errno));
	v->first_psn = random[0] & PSN_MASK;
	v->queue_key = random[1] & 0x7fffffff; /* the highest bit is for controlled keys */
	return 0;
}

static int open_all(struct verbs_session *v, const struct open_arguments *a) {
	int r;

	r = verbs_device_open(a, &v->device);
	if (r < 0)
		return r;
	describe(v);
	/* Read only when there is something to read: asking must not block. */
	(void) fcntl(v->device.context->async_fd, F_SETFL, fcntl(v->device.context->async_fd, F_GETFL) | O_NONBLOCK);
	r = check_device(v);
	if (r == 0)
		r = draw_numbers(v);
	if (r == 0 && !job_has_lanes(a->job))
		r = allocate(v);
	if (r == 0)
		r = verbs_memory_open(v);
	if (r == 0)
		r = verbs_queues_open(v);
	if (r == 0 && verbs_has_moves(v))
		r = verbs_transfer_open(v);
	if (r == 0)
		r = a->job->verbs.rdma_cm ? verbs_cm_open(v, a->local) : verbs_init_queues(v);
	return r;
}

static int verbs_open(const struct open_arguments *a, struct session **ret) {
	const struct job *job = a->job;
	struct verbs_session *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return failure(-ENOMEM, EXIT_HOST, "verbs: out of memory");
	v->session.backend = &backend_verbs;
	v->job = job;
	v->role = a->role;
	v->lane = a->lane;
	v->arena = *a->arena;
	v->slots = a->arena->slots;
	v->wake_fd = a->wake_fd;
	v->datagrams = job->verbs.connection == CONNECTION_UD;
	v->reliable = job->verbs.connection == CONNECTION_RC;
	v->lossy = !v->reliable;
	v->atomics = op_is_atomic(job->op);
	v->counts = job->kind == KIND_RATE;
	v->credits = v->counts && op_takes_receive(job->op) && a->role == ROLE_CLIENT;
	v->immediate = job->op == OP_SEND_IMM || job->op == OP_WRITE_IMM;
	if (getnameinfo((const struct sockaddr *) a->peer, sizeof(*a->peer), v->peer_name, sizeof(v->peer_name), NULL,
			0, NI_NUMERICHOST) != 0)
		(void) snprintf(v->peer_name, sizeof(v->peer_name), "the peer");

	r = open_all(v, a);
	if (r < 0) {
		(void) verbs_close(&v->session);
		return r;
	}
	*ret = &v->session;
	return 0;
}

static int verbs_local_address(struct session *s, struct address *ret) {
	return verbs_address_write(verbs_session(s), ret);
}

/* A device may place a message's packets as they come, above all with adaptive routing. */
static void ask_order(struct verbs_session *v) {
	v->in_order = ibv_query_qp_data_in_order(v->queues[0].qp, IBV_WR_RDMA_WRITE, 0) > 0;
	if (!v->in_order && v->role == ROLE_CLIENT && job_largest_size(v->job) > v->path_mtu)
		notice("device %s may write the last byte early: latencies above %u bytes (MTU) may be too low; "
		       "compare --op write-imm", v->device.name, v->path_mtu);
}

static int verbs_connect(struct session *s, const struct address *peer) {
	struct verbs_session *v = verbs_session(s);
	int r;

	r = verbs_address_read(v, peer);
	if (r < 0)
		return r;
	r = v->cm ? verbs_cm_connect(v) : verbs_connect_queues(v);
	if (r == 0 && s->stamps)
		ask_order(v);
	/* The peer sends only when both ends are connected. */
	return r == 0 && v->counts && op_takes_receive(v->job->op) ? verbs_rate_lend(v) : r;
}

static struct session *verbs_close(struct session *s) {
	struct verbs_session *v = verbs_session(s);

	if (!v)
		return NULL;
	verbs_queues_close(v);
	verbs_cm_close(v);
	verbs_memory_close(v);
	verbs_device_close(&v->device);
	free(v->requests);
	free(v->places);
	free(v->channels);
	free(v->moves);
	free(v);
	return NULL;
}

/*
 * What captures of packets, and a card's own tools, name an end's queue pairs by: number, and sequence number of the
 * first packet, which a connection manager chooses.
 */
static json_t *queue_pairs_json(const struct verbs_session *v, bool remote) {
	json_t *all = json_array();

	for (uint32_t i = 0; i < v->n_queues; i++) {
		const struct verbs_queue *q = &v->queues[i];
		uint32_t number = remote ? q->remote_number : q->qp->qp_num;
		uint32_t psn = ((remote ? v->remote_psn : v->first_psn) + q->number) & PSN_MASK;
		json_t *one = json_pack("{s:I}", "number", (json_int_t) number);

		if (!v->cm)
			(void) json_object_set_new(one, "psn", json_integer((json_int_t) psn));
		(void) json_array_append_new(all, one);
	}
	return all;
}

/* Port, GID, lane and queue pairs as they are in use. */
static void verbs_describe(struct session *s, json_t *record) {
	const struct verbs_session *v = verbs_session(s);
	const struct {
		const char *key;
		int value;              /* negative: none, or not known */
	} facts[] = {
		{ "traffic_class", v->traffic_class },
		{ "sl", v->sl },
		{ "gid_index", v->device.gid_index },
		{ "pkey", v->device.pkey ? v->device.pkey : -1 },
		{ "ib_port", v->device.port },
		{ "server_ib_port", v->remote_port ? v->remote_port : -1 },
	};
	json_t *params = json_object_get(record, "params");

	for (size_t i = 0; i < ELEMENTSOF(facts); i++)
		(void) json_object_set_new(params, facts[i].key,
					   facts[i].value < 0 ? json_null() : json_integer(facts[i].value));
	if (v->session.stamps)
		(void) json_object_set_new(params, "data_in_order", json_boolean(v->in_order));
	(void) json_object_set_new(record, "queue_pairs",
				   json_pack("{s:o, s:o}", "client", queue_pairs_json(v, false),
					     "server", queue_pairs_json(v, true)));
}

const struct backend backend_verbs = {
	.facts = &backend_facts[BACKEND_VERBS],
	.version = BACKEND_VERSION,
	.probe = verbs_probe,
	.near = verbs_device_near,
	.open = verbs_open,
	.slots = verbs_slots,
	.local_address = verbs_local_address,
	.connect = verbs_connect,
	.begin = verbs_begin,
	.lanes = &(const struct lane_hooks) { .place = verbs_place, .post_list = verbs_post_list, .arm = verbs_arm },
	.post = verbs_post,
	.post_receive = verbs_post_receive,
	.poll = verbs_poll,
	.wait = verbs_wait,
	.check = verbs_check,
	.describe = verbs_describe,
	.close = verbs_close,
};
