/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion queue, shared receive queue and queue pairs. What the device can is asked;
 * a wish beyond it is refused by name.
 */
#include "verbs.h"

#include <stdio.h>

#include "base/message.h"

/* What perftest(1) sends inline in its latency tests unless told otherwise, by operation and connection. */
enum {
	INLINE_SEND = 236,
	INLINE_WRITE = 220,
	INLINE_DATAGRAM = 188,
};

enum ibv_qp_type verbs_qp_type(enum connection connection) {
	return connection == CONNECTION_UD ? IBV_QPT_UD : connection == CONNECTION_UC ? IBV_QPT_UC : IBV_QPT_RC;
}

static int above_limit(const struct verbs_session *v, const char *what, uint64_t wanted, int64_t limit,
		       const char *remedy) {
	if (wanted <= (uint64_t) MAX(limit, 0))
		return 0;
	return failure(-EINVAL, EXIT_HOST, "verbs, device %s: %s: %llu are needed, and it has at most %lld; %s",
		       v->device.name, what, (unsigned long long) wanted, (long long) limit, remedy);
}

static int check_limits(const struct verbs_session *v, uint64_t completions) {
	const struct ibv_device_attr *a = &v->device.attr;
	int r;

	r = above_limit(v, "queue pairs", v->n_queues, a->max_qp, "lower --queue-pairs");
	if (r == 0)
		r = above_limit(v, "work requests of a queue pair", MAX(v->send_depth, v->srq ? 0 : v->receive_depth),
				a->max_qp_wr, "lower --outstanding");
	if (r == 0)
		r = above_limit(v, "entries of a completion queue", completions, a->max_cqe,
				"lower --outstanding or --queue-pairs");
	return r;
}

/*
 * Drivers have a vector, which is an interrupt, for each processor, and all queues of one vector wake the same one. The
 * lanes of a device take theirs in turn, and so do pairs, which may share a device.
 */
static int completion_vector(const struct verbs_session *v) {
	const uint32_t pairs = job_pairs(v->job), n = (uint32_t) MAX(v->device.context->num_comp_vectors, 1);

	return (int) ((v->lane / pairs + v->lane % pairs) % n);
}

static int open_completions(struct verbs_session *v, uint64_t entries) {
	if (v->job->completion == COMPLETION_EVENT) {
		v->channel = ibv_create_comp_channel(v->device.context);
		if (!v->channel)
			return verbs_call_failure(errno, &v->device, "make a completion channel");
	}
	v->cq = ibv_create_cq(v->device.context, (int) entries, NULL, v->channel, completion_vector(v));
	return v->cq ? 0 : verbs_call_failure(errno, &v->device, "make a completion queue");
}

static int open_srq(struct verbs_session *v) {
	struct ibv_srq_init_attr a = { .attr = { .max_wr = v->arena.window, .max_sge = v->datagrams ? 2 : 1 } };
	int r;

	r = above_limit(v, "shared receive queues", 1, v->device.attr.max_srq, "leave --srq out");
	if (r == 0)
		r = above_limit(v, "receives of a shared receive queue", v->arena.window, v->device.attr.max_srq_wr,
				"lower --outstanding");
	if (r < 0)
		return r;
	v->srq = ibv_create_srq(v->pd, &a);
	return v->srq ? 0 : verbs_call_failure(errno, &v->device, "make a shared receive queue");
}

static uint32_t wanted_inline(const struct job *job) {
	uint32_t limit, most = 0;

	if (job_sends_from_gpu(job))
		return 0; /* the host would have to copy it, and cannot read it */
	if (job->verbs.inline_bytes >= 0)
		return (uint32_t) job->verbs.inline_bytes;
	if ((job->kind != KIND_LATENCY && job->kind != KIND_RATE) || !(op_is_send(job->op) || op_is_write(job->op)))
		return 0;
	limit = job->verbs.connection == CONNECTION_UD ? INLINE_DATAGRAM
		: op_is_send(job->op) ? INLINE_SEND : INLINE_WRITE;
	if (job->kind == KIND_LATENCY)
		return limit;
	/* No more than its messages have: the device reads a queue whose work requests are small faster. */
	for (size_t i = 0; i < job->n_sizes; i++)
		if (job->sizes[i] <= limit)
			most = MAX(most, (uint32_t) job->sizes[i]);
	return most;
}

static uint64_t operation(enum op op) {
	return op == OP_READ ? IBV_QP_EX_WITH_RDMA_READ : op == OP_SEND ? IBV_QP_EX_WITH_SEND
		: IBV_QP_EX_WITH_RDMA_WRITE;
}

static struct ibv_qp *create_with_wr(struct verbs_session *v, struct verbs_queue *q, struct ibv_qp_init_attr *attr) {
	struct ibv_qp_init_attr_ex a = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = v->pd,
		.send_ops_flags = operation(v->job->op),
	};
	struct ibv_qp *qp = ibv_create_qp_ex(v->device.context, &a);

	if (!qp)
		return NULL;
	q->wr = ibv_qp_to_qp_ex(qp);
	if (!q->wr) {
		(void) ibv_destroy_qp(qp);
		errno = EOPNOTSUPP;
		return NULL;
	}
	attr->cap = a.cap; /* what it really has */
	return qp;
}

static struct ibv_qp *create_queue(struct verbs_session *v, struct verbs_queue *q, uint32_t inline_bytes) {
	const struct ibv_qp_init_attr wanted = {
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.srq = v->srq,
		.qp_type = verbs_qp_type(v->job->verbs.connection),
		.cap = {
			.max_send_wr = v->send_depth,
			.max_recv_wr = v->srq ? 0 : v->receive_depth,
			.max_send_sge = 1,
			.max_recv_sge = v->srq ? 0 : v->datagrams ? 2 : 1,
			.max_inline_data = inline_bytes,
		},
	};
	struct ibv_qp_init_attr a = wanted;
	struct ibv_qp *qp = v->use_wr ? create_with_wr(v, q, &a) : ibv_create_qp(v->pd, &a);

	/* Drivers refuse what they do not know in many ways: whether it was the ibv_wr calls is seen without them. */
	if (!qp && v->use_wr && q->number == 0) {
		a = wanted;
		qp = ibv_create_qp(v->pd, &a);
		v->use_wr = !qp;
	}
	/* Some drivers create it all the same, and say what it really takes. */
	if (qp && a.cap.max_inline_data < inline_bytes) {
		(void) ibv_destroy_qp(qp);
		q->wr = NULL;
		errno = EINVAL;
		return NULL;
	}
	return qp;
}

static int open_queue(struct verbs_session *v, uint32_t i) {
	struct verbs_queue *q = v->queues + i;
	uint32_t less;
	char what[64];
	int e;

	q->number = i;
	q->ring = calloc((size_t) v->ring_mask + 1, sizeof(*q->ring));
	if (!q->ring)
		return failure(-ENOMEM, EXIT_HOST, "verbs: out of memory for %u queue pairs", v->n_queues);
	q->qp = create_queue(v, q, v->inline_bytes);
	if (q->qp)
		return 0;
	e = errno;
	/* No device says beforehand how much it takes inline. Is it that? */
	for (less = v->inline_bytes; e == EINVAL && less > 0 && !q->qp;) {
		less = verbs_less_inline(less);
		q->qp = create_queue(v, q, less);
	}
	if (q->qp && v->job->verbs.inline_bytes > 0)
		return failure(-EINVAL, EXIT_HOST, "verbs, device %s: --inline %u is more than its queue pairs "
			       "take; give %u or less, or leave it out", v->device.name, v->inline_bytes, less);
	if (q->qp) {
		v->inline_bytes = less;
		return 0;
	}
	(void) snprintf(what, sizeof(what), "make queue pair %u of %u", i + 1, v->n_queues);
	return verbs_call_failure(e, &v->device, what);
}

/* With a shared receive queue a completion names the queue pair only by its number. */
static int index_numbers(struct verbs_session *v) {
	uint32_t size = 4;

	while (size < 2 * v->n_queues)
		size *= 2;
	v->number_mask = size - 1;
	v->channel_of_number = calloc(size, sizeof(*v->channel_of_number));
	if (!v->channel_of_number)
		return failure(-ENOMEM, EXIT_HOST, "verbs: out of memory for %u queue pairs", v->n_queues);
	for (uint32_t i = 0; i < v->n_queues; i++) {
		uint32_t k = v->queues[i].qp->qp_num & v->number_mask;

		while (v->channel_of_number[k])
			k = (k + 1) & v->number_mask;
		v->channel_of_number[k] = (uint16_t) (i + 1);
	}
	return 0;
}

static void choose_depths(struct verbs_session *v) {
	const struct job *job = v->job;
	uint32_t ring = 1;

	v->n_queues = job->queue_pairs;
	if (job_has_lanes(job)) {
		/*
		 * The target posts nothing but credits; and drivers are not asked what they make of a queue of none.
		 */
		v->receive_depth = verbs_rate_receives(v);
		v->send_depth = v->role == ROLE_CLIENT ? job->outstanding : v->counts ? VERBS_CREDITS : 1;
		v->moderation = UINT32_MAX; /* work.flush says which asks for a completion */
	} else {
		v->receive_depth = v->arena.window / v->n_queues;
		v->send_depth = job->kind == KIND_LATENCY ? VERBS_LATENCY_DEPTH : job->outstanding;
	}
	while (ring < v->send_depth)
		ring *= 2;
	v->ring_mask = ring - 1;
	v->use_wr = verbs_has_moves(v);
	v->inline_bytes = wanted_inline(job);
}

int verbs_queues_open(struct verbs_session *v) {
	const struct job *job = v->job;
	uint64_t completions;
	int r;

	choose_depths(v);
	/* Room for all that can be under way at once: then no completion is ever lost. */
	completions = (uint64_t) v->n_queues * v->send_depth;
	if (op_takes_receive(job->op))
		completions += v->counts ? (uint64_t) v->n_queues * v->receive_depth : v->arena.window;
	r = check_limits(v, completions);
	if (r == 0)
		r = open_completions(v, completions);
	if (r == 0 && job->verbs.srq)
		r = open_srq(v);
	if (r < 0)
		return r;
	v->queues = calloc(v->n_queues, sizeof(*v->queues));
	if (!v->queues)
		return failure(-ENOMEM, EXIT_HOST, "verbs: out of memory for %u queue pairs", v->n_queues);
	for (uint32_t i = 0; i < v->n_queues; i++) {
		r = open_queue(v, i);
		if (r < 0)
			return r;
	}
	v->session.inline_bytes = v->inline_bytes;
	return v->srq ? index_numbers(v) : 0;
}

void verbs_queues_close(struct verbs_session *v) {
	for (uint32_t i = 0; v->queues && i < v->n_queues; i++) {
		struct verbs_queue *q = v->queues + i;

		if (q->building)
			ibv_wr_abort(q->wr);
		if (q->qp)
			(void) ibv_destroy_qp(q->qp);
		if (q->ah)
			(void) ibv_destroy_ah(q->ah);
		free(q->ring);
		free(q->requests);
		free(q->places);
	}
	free(v->queues);
	free(v->channel_of_number);
	if (v->srq)
		(void) ibv_destroy_srq(v->srq);
	if (v->cq) {
		ibv_ack_cq_events(v->cq, v->events);
		(void) ibv_destroy_cq(v->cq);
	}
	if (v->channel)
		(void) ibv_destroy_comp_channel(v->channel);
	v->queues = NULL;
	v->channel_of_number = NULL;
	v->srq = NULL;
	v->cq = NULL;
	v->channel = NULL;
}
