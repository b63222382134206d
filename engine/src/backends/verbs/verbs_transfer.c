/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that carry nothing but payload: of transfers, of which there are far more than may be under way, of rates,
 * and of bandwidth. A slot holds only what is its own (16 bytes instead of the 146 of a work request and its place),
 * and becomes a work request when it is posted. Each queue pair collects a list and rings one doorbell for it.
 *
 * Lists go through the ibv_wr calls (ibv_wr_post(3)) where the device has them: each message is written to its queue as
 * it comes, and one call at the end rings the doorbell. A linked list for ibv_post_send() is written, and read again
 * by the driver.
 */
#include "verbs.h"

#include "base/message.h"

/* Immediate data, operands and addresses are more than that, and a message that is alone is prepared as a whole. */
bool verbs_has_moves(const struct verbs_session *v) {
	const struct job *job = v->job;

	if (job_has_lanes(job))
		return v->role == ROLE_CLIENT;
	return job->kind == KIND_BANDWIDTH && !v->datagrams && (v->role == ROLE_CLIENT || job->bidirectional) &&
	       (job->op == OP_WRITE || job->op == OP_READ || job->op == OP_SEND);
}

static int out_of_memory(const struct verbs_session *v) {
	return failure(-ENOMEM, EXIT_HOST, "verbs: out of memory for %u messages and %u queue pairs; "
		       "lower --batch, --max-chunks or --outstanding", v->slots, v->n_queues);
}

/* The linked list's work requests lie in a ring, like those of the device: what is the same for all is written once. */
static int open_requests(struct verbs_session *v, struct verbs_queue *q) {
	const uint32_t n = v->ring_mask + 1;

	q->requests = calloc(n, sizeof(*q->requests));
	q->places = calloc(n, sizeof(*q->places));
	if (!q->requests || !q->places)
		return out_of_memory(v);
	for (uint32_t i = 0; i < n; i++) {
		q->places[i].lkey = v->local_key;
		q->requests[i] = (struct ibv_send_wr) {
			.sg_list = q->places + i,
			.num_sge = 1,
			.opcode = verbs_opcode(v->job->op),
		};
	}
	return 0;
}

int verbs_transfer_open(struct verbs_session *v) {
	const bool reads = v->job->op == OP_READ;
	int r = 0;

	v->local = reads ? v->arena.rx : v->arena.tx;
	v->local_key = reads ? v->rx_key : v->tx_key;
	v->moves = calloc(v->slots, sizeof(*v->moves));
	if (!v->moves)
		return out_of_memory(v);
	for (uint32_t i = 0; r == 0 && !v->use_wr && i < v->n_queues; i++)
		r = open_requests(v, v->queues + i);
	v->session.post_api = v->use_wr ? "ibv_wr" : "ibv_post_send";
	return r;
}

void verbs_place(struct session *s, uint32_t slot, uint32_t channel, uint64_t offset, uint64_t size) {
	verbs_session(s)->moves[slot] = (struct verbs_move) { .offset = offset, .bytes = (uint32_t) size,
							      .channel = (uint16_t) channel };
}

static inline void add_to_list(struct verbs_session *v, struct verbs_queue *q, const struct verbs_move *m,
			       bool signalled) {
	const uint32_t place = q->head & v->ring_mask;
	struct ibv_send_wr *w = q->requests + place;

	q->places[place].addr = (uintptr_t) v->local + m->offset;
	q->places[place].length = m->bytes;
	w->wr_id = (uint64_t) q->number << 32 | q->head;
	w->send_flags = (signalled ? IBV_SEND_SIGNALED : 0u) | (m->bytes <= v->inline_bytes ? IBV_SEND_INLINE : 0u);
	w->wr.rdma.remote_addr = v->remote_base + m->offset;
	w->wr.rdma.rkey = v->remote_key;
	w->next = NULL;
	if (q->last)
		q->last->next = w;
	else
		q->first = w;
	q->last = w;
}

/* A message between ibv_wr_start() and ibv_wr_complete(), whose identity and flags are set. */
static inline void add_to_queue(const struct verbs_session *v, struct ibv_qp_ex *wr, enum op op, bool inlined,
				uint64_t offset, uint32_t bytes) {
	if (op == OP_WRITE)
		ibv_wr_rdma_write(wr, v->remote_key, v->remote_base + offset);
	else if (op == OP_READ)
		ibv_wr_rdma_read(wr, v->remote_key, v->remote_base + offset);
	else
		ibv_wr_send(wr);
	if (inlined)
		ibv_wr_set_inline_data(wr, v->local + offset, bytes);
	else
		ibv_wr_set_sge(wr, v->local_key, (uintptr_t) v->local + offset, bytes);
}

/* What is the same for a whole list is decided before it: a message costs two calls of the device's provider. */
static void queue_list(struct verbs_session *v, struct verbs_queue *q, const struct verbs_move *m, uint32_t n,
		       bool signalled) {
	struct ibv_qp_ex *wr = q->wr;
	const uint64_t id = (uint64_t) q->number << 32;
	const enum op op = v->job->op;
	const uint32_t bytes = m->bytes;
	const bool inlined = bytes <= v->inline_bytes;
	/* Soft-RoCE's kernel looks for inline data only where the flag is set; others know it from the call. */
	const unsigned flags = inlined ? IBV_SEND_INLINE : 0u;

	ibv_wr_start(wr);
	q->building = true;
	wr->wr_flags = flags;
	for (uint32_t i = 0; i < n; i++) {
		wr->wr_id = id | q->head++;
		if (i + 1 == n && signalled)
			wr->wr_flags = flags | IBV_SEND_SIGNALED;
		add_to_queue(v, wr, op, inlined, m[i].offset, bytes);
	}
}

/* When it fails, nothing of the list was posted. */
static inline int ring(struct verbs_session *v, struct verbs_queue *q) {
	int e;

	if (q->first)
		return verbs_ring_doorbell(v, q);
	if (!q->building)
		return 0;
	q->building = false;
	e = ibv_wr_complete(q->wr);
	return likely(e == 0) ? 0 : verbs_post_failed(v, "list of messages", e);
}

int verbs_transfer_list(struct verbs_session *v, struct verbs_queue *q, const struct verbs_move *m, uint32_t n,
			bool signalled) {
	if (q->wr)
		queue_list(v, q, m, n, signalled);
	else
		for (uint32_t i = 0; i < n; i++, q->head++)
			add_to_list(v, q, m + i, signalled && i + 1 == n);
	return ring(v, q);
}

/* With the ibv_wr calls. */
static inline int queue_one(struct verbs_session *v, struct verbs_queue *q, const struct verbs_move *m, bool signalled,
			    bool more) {
	struct ibv_qp_ex *wr = q->wr;
	const bool inlined = m->bytes <= v->inline_bytes;
	int e;

	if (!q->building)
		ibv_wr_start(wr);
	wr->wr_id = (uint64_t) q->number << 32 | q->head++;
	wr->wr_flags = (signalled ? IBV_SEND_SIGNALED : 0u) | (inlined ? IBV_SEND_INLINE : 0u);
	add_to_queue(v, wr, v->job->op, inlined, m->offset, m->bytes);
	q->building = more;
	if (more)
		return 0;
	e = ibv_wr_complete(wr);
	return likely(e == 0) ? 0 : verbs_post_failed(v, "message", e);
}

int verbs_transfer_post(struct verbs_session *v, const struct work *work) {
	const struct verbs_move *m = v->moves + work->slot;
	struct verbs_queue *q = v->queues + m->channel;
	bool signalled;

	/* What was collected must not wait for what comes after it, which waits for room. */
	if (unlikely(q->head - q->tail == v->send_depth)) {
		int e = ring(v, q);

		return e < 0 ? e : -EAGAIN;
	}
	signalled = ++q->unsignalled >= v->moderation || work->flush;
	if (signalled)
		q->unsignalled = 0;
	q->ring[q->head & v->ring_mask] = work->slot;
	if (q->wr)
		return queue_one(v, q, m, signalled, work->more);
	add_to_list(v, q, m, signalled);
	q->head++;
	return work->more ? 0 : ring(v, q);
}
