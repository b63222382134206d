/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message rates: whole lists are posted, and a completion stands for all messages before it, so that neither end looks
 * at each of them.
 *
 * Sends need receives, and a reliable sender that finds none pauses for VERBS_MIN_RNR_TIMER. So it only sends what the
 * target has lent a receive for: the target says how many it has lent so far in the immediate data of a message
 * without payload, each time that a part of its receives (VERBS_CREDITS) is lent again.
 */
#include "verbs.h"

#include <endian.h>

#include "base/message.h"

enum { LEND_MAX = 64 };                         /* receives of one list, and at most one part of all */

/* Twice what the sender may have outstanding: it goes on while the target is busy with half of them. */
static uint32_t receives_of(const struct job *job) {
	return 2 * job->outstanding;
}

/* A part of the receives, of which there are VERBS_CREDITS at most. */
static uint32_t part_of(const struct job *job) {
	return (receives_of(job) + VERBS_CREDITS - 1) / VERBS_CREDITS;
}

uint32_t verbs_rate_receives(const struct verbs_session *v) {
	if (!op_takes_receive(v->job->op))
		return 1;
	/* The sender's are for credits: all that the target can have sent, and one that is being taken. */
	return v->role == ROLE_SERVER ? receives_of(v->job) : VERBS_CREDITS + 1;
}

/* Each list of receives is as long as this one. */
static int lend_list(struct verbs_session *v, struct verbs_queue *q, uint32_t n) {
	struct ibv_recv_wr wr[LEND_MAX], *bad;
	struct ibv_sge sge[LEND_MAX];
	int e;

	for (uint32_t i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t) v->arena.rx + place_offset(&v->receive_places, q->number, q->place),
			.length = v->receive_bytes,
			.lkey = v->rx_key,
		};
		if (++q->place == v->receive_places.n)
			q->place = 0;
		wr[i] = (struct ibv_recv_wr) { .wr_id = VERBS_ID_RECEIVE | q->number, .sg_list = sge + i, .num_sge = 1,
					       .next = i + 1 < n ? wr + i + 1 : NULL };
	}
	e = ibv_post_recv(q->qp, wr, &bad);
	q->lent += n;
	return likely(e == 0) ? 0 : verbs_post_failed(v, "list of receives", e);
}

/* For a credit, which has no payload. */
static int lend_empty(struct verbs_session *v, struct verbs_queue *q) {
	struct ibv_recv_wr *bad, wr = { .wr_id = VERBS_ID_RECEIVE | q->number };
	int e = ibv_post_recv(q->qp, &wr, &bad);

	return likely(e == 0) ? 0 : verbs_post_failed(v, "receive", e);
}

int verbs_rate_lend(struct verbs_session *v) {
	int e = 0;

	job_rate_places(v->job, &v->receive_places);
	v->receive_bytes = (uint32_t) job_largest_size(v->job);
	for (uint32_t i = 0; e == 0 && i < v->n_queues; i++) {
		struct verbs_queue *q = v->queues + i;

		if (v->role == ROLE_CLIENT)
			for (uint32_t k = 0; e == 0 && k < v->receive_depth; k++)
				e = lend_empty(v, q);
		else
			while (e == 0 && q->lent < v->receive_depth)
				e = lend_list(v, q, MIN((uint32_t) LEND_MAX, v->receive_depth - q->lent));
		/* What is there from the beginning both ends know. */
		q->credit = receives_of(v->job);
	}
	return e;
}

/* The target: says how many receives it has lent, where a part of them is new and the queue has room. */
static int say_credit(struct verbs_session *v, struct verbs_queue *q) {
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED };
	int e;

	if (q->lent - q->credit < part_of(v->job) || q->head - q->tail == v->send_depth)
		return 0;
	wr.wr_id = (uint64_t) q->number << 32 | q->head++;
	wr.imm_data = htobe32(q->lent);
	q->credit = q->lent;
	e = ibv_post_send(q->qp, &wr, &bad);
	return likely(e == 0) ? 0 : verbs_post_failed(v, "credit", e);
}

/* The target: a message has come. */
static inline int arrived(struct verbs_session *v, struct verbs_queue *q) {
	const uint32_t list = MIN((uint32_t) LEND_MAX, part_of(v->job));
	int e;

	if (++q->taken + v->receive_depth - q->lent < list)
		return 0;
	e = lend_list(v, q, list);
	return e < 0 ? e : say_credit(v, q);
}

/* The sender: more receives have been lent. */
static int take_credit(struct verbs_session *v, struct verbs_queue *q, const struct ibv_wc *wc) {
	const uint32_t lent = be32toh(wc->imm_data);

	/* It comes from the network, and only ever grows, by no more than there are receives. */
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || lent - q->credit == 0 || lent - q->credit > receives_of(v->job))
		return failure(-EPROTO, EXIT_PEER, "verbs: %s lent an impossible number of receives, %u after %u; "
			       "is it the same version of perch?", v->peer_name, lent, q->credit);
	q->credit = lent;
	v->credited = true;
	return lend_empty(v, q);
}

/* 1: what has come is told in *ret; 0: it is no message; negative: said. */
static inline int received(struct verbs_session *v, const struct ibv_wc *wc, struct completion *ret) {
	struct verbs_queue *q = v->queues + (wc->wr_id & ~VERBS_ID_RECEIVE);
	int e;

	if (v->role == ROLE_CLIENT)
		return take_credit(v, q, wc);
	e = arrived(v, q);
	*ret = (struct completion) { .kind = COMPLETION_RECEIVE, .channel = q->number };
	return e < 0 ? e : 1;
}

/* A credit of the target has left: there is room for the next one. */
static inline int sent(struct verbs_session *v, struct verbs_queue *q, uint32_t end, struct completion *ret) {
	const uint32_t n = end - q->tail;

	q->tail = end;
	if (v->role == ROLE_SERVER)
		return op_takes_receive(v->job->op) ? say_credit(v, q) : 0;
	*ret = (struct completion) { .kind = COMPLETION_LOCAL, .channel = q->number, .more = n - 1 };
	return n > 0;
}

int verbs_rate_count(struct verbs_session *v, struct completion *ret, unsigned max) {
	unsigned n = 0;

	for (; v->next_completion < v->n_completions && n < max; v->next_completion++) {
		const struct ibv_wc *wc = v->completions + v->next_completion;
		const bool failed = wc->status != IBV_WC_SUCCESS, receive = wc->wr_id & VERBS_ID_RECEIVE;
		int e = 0;

		/* Before one that failed all are complete: a queue pair works in order. */
		if (!receive)
			e = sent(v, v->queues + (wc->wr_id >> 32), (uint32_t) wc->wr_id + !failed, ret + n);
		else if (!failed)
			e = received(v, wc, ret + n);
		if (unlikely(e < 0))
			return e;
		n += (unsigned) e;
		if (unlikely(failed))
			return n > 0 ? (int) n : verbs_work_failed(v, wc);
	}
	return (int) n;
}

int verbs_post_list(struct session *s, const struct list *list) {
	struct verbs_session *v = verbs_session(s);
	struct verbs_queue *q = v->queues + list->channel;
	int e;

	if (v->credits && q->credit - q->head < list->n)
		return 0;
	e = verbs_transfer_list(v, q, v->moves + list->slot, list->n, list->signal);
	return likely(e == 0) ? (int) list->n : e;
}
