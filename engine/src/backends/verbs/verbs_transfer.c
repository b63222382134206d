/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers: batches of far more messages than may be under way.
 * So a slot holds only what is its own (16 bytes instead of the 146 of a work request and its place),
 * and becomes a work request when it is posted. Each queue pair collects a list and rings one doorbell for it;
 * a work request asks for a completion only where the caller says so, which then stands for all before it.
 */
#include "verbs.h"

#include "base/message.h"

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
		q->places[i].lkey = v->tx_key;
		q->requests[i] = (struct ibv_send_wr) {
			.sg_list = q->places + i,
			.num_sge = 1,
			.opcode = verbs_opcode(v->job->op),
		};
	}
	return 0;
}

int verbs_transfer_open(struct verbs_session *v) {
	int r = 0;

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

	q->places[place].addr = (uintptr_t) v->arena.tx + m->offset;
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

static inline int ring(struct verbs_session *v, struct verbs_queue *q) {
	int e;

	if (q->first)
		return verbs_ring_doorbell(v, q);
	if (!q->building)
		return 0;
	e = verbs_wr_ring(q);
	return likely(e == 0) ? 0 : verbs_post_failed(v, "list of messages", e);
}

int verbs_transfer_list(struct verbs_session *v, struct verbs_queue *q, const struct verbs_move *m, uint32_t n,
			bool signalled) {
	if (q->wr)
		verbs_wr_list(v, q, m, n, signalled);
	else
		for (uint32_t i = 0; i < n; i++, q->head++)
			add_to_list(v, q, m + i, signalled && i + 1 == n);
	return ring(v, q);
}

int verbs_transfer_post(struct verbs_session *v, const struct work *work) {
	const struct verbs_move *m = v->moves + work->slot;
	struct verbs_queue *q = v->queues + m->channel;

	/* What was collected must not wait for what comes after it, which waits for room. */
	if (unlikely(q->head - q->tail == v->send_depth)) {
		int e = ring(v, q);

		return e < 0 ? e : -EAGAIN;
	}
	if (q->wr)
		verbs_wr_add(v, q, m, work->flush);
	else
		add_to_list(v, q, m, work->flush);
	q->ring[q->head++ & v->ring_mask] = work->slot;
	return work->more ? 0 : ring(v, q);
}
