/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot path. Work requests are prepared when a phase begins; posting sets an identity and a flag.
 * Of each queue pair only every Nth request may ask for a completion, which then stands for all before it:
 * a ring remembers which those were.
 */
#include "verbs.h"

#include <endian.h>
#include <poll.h>
#include <time.h>

#include "base/message.h"

enum {
	/* looks at memory for each look at the completion queue, which costs as much as all of them */
	STAMP_SPINS = 32,
	STAMP_MAX = 255,                /* stamps run from 1: 0 is what an empty place holds */
	/* empty polls (some milliseconds) between two looks at the device's own events: a system call */
	EVENT_EVERY = 1u << 16,
};

static const enum ibv_wr_opcode opcodes[OP_MAX] = {
	[OP_SEND] = IBV_WR_SEND,
	[OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[OP_WRITE] = IBV_WR_RDMA_WRITE,
	[OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[OP_READ] = IBV_WR_RDMA_READ,
	[OP_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[OP_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

enum ibv_wr_opcode verbs_opcode(enum op op) {
	return opcodes[op];
}

/* Whose result comes back into the own receive half. */
static inline bool fetches(enum op op) {
	return op == OP_READ || op_is_atomic(op);
}

static void prepare(struct verbs_session *v, uint32_t slot, uint64_t size) {
	const struct arena *a = &v->arena;
	const enum op op = v->job->op;
	const struct verbs_queue *q = v->queues + v->channels[slot];
	struct ibv_send_wr *w = v->requests + slot;

	v->places[slot] = (struct ibv_sge) {
		.addr = (uintptr_t) (fetches(op) ? arena_rx(a, slot) : arena_tx(a, slot)),
		.length = (uint32_t) size,
		.lkey = fetches(op) ? v->rx_key : v->tx_key,
	};
	*w = (struct ibv_send_wr) { .sg_list = v->places + slot, .num_sge = 1, .opcode = opcodes[op] };
	if (v->immediate)
		w->imm_data = htobe32(slot);
	if (v->datagrams) {
		w->wr.ud.ah = q->ah;
		w->wr.ud.remote_qpn = q->remote_number;
		w->wr.ud.remote_qkey = v->remote_queue_key;
	} else if (op_is_atomic(op)) {
		w->wr.atomic.remote_addr = v->remote_base + arena_offset(a, slot);
		w->wr.atomic.rkey = v->remote_key;
	} else if (!op_is_send(op)) {
		w->wr.rdma.remote_addr = v->remote_base + arena_offset(a, slot);
		w->wr.rdma.rkey = v->remote_key;
	}
}

static inline uint8_t *stamp_place(const struct verbs_session *v, uint32_t slot) {
	return arena_rx(&v->arena, slot) + v->stamp_offset;
}

void verbs_begin(struct session *s, uint64_t size) {
	struct verbs_session *v = verbs_session(s);
	const struct job *job = v->job;
	bool inlined = size <= v->inline_bytes && !fetches(job->op);

	if (job_has_lanes(job))
		return; /* lane_prepare() calls verbs_place(), and no phase changes it */
	for (uint32_t slot = 0; slot < v->slots; slot++)
		if (v->moves)
			verbs_place(s, slot, v->channels[slot], arena_offset(&v->arena, slot), size);
		else
			prepare(v, slot, size);
	v->send_flags = inlined ? IBV_SEND_INLINE : 0;
	/* Inline data is copied when it is posted, and in a ping-pong the answer is the only completion that counts. */
	v->silent = inlined && job->kind == KIND_LATENCY && (op_takes_receive(job->op) || s->stamps);
	v->moderation = v->silent ? v->send_depth / 4 : job->cq_moderation;
	v->received_bytes = op_is_send(job->op) ? (uint32_t) size + (v->datagrams ? VERBS_GRH_BYTES : 0) : 0;

	for (uint32_t i = 0; i < v->n_queues; i++)
		v->queues[i].arrivals = 0;
	/* The peer sends only after both ends have begun, so nobody writes here now. */
	v->stamps_seen = v->stamps_sent = 0;
	v->stamp_offset = size - 1;
	for (uint32_t slot = 0; s->stamps && slot < v->slots; slot++)
		*stamp_place(v, slot) = 0;
}

static inline uint8_t stamp_of(uint64_t number) {
	return (uint8_t) (number % STAMP_MAX + 1);
}

/*
 * A queue pair that fails flushes both its queues, and a driver may report that first:
 * what is told is the cause, if it is there.
 */
int verbs_work_failed(struct verbs_session *v, const struct ibv_wc *first) {
	struct ibv_wc cause = *first, wc;

	for (unsigned i = v->next_completion; i < v->n_completions && cause.status == IBV_WC_WR_FLUSH_ERR; i++)
		if (v->completions[i].status != IBV_WC_SUCCESS)
			cause = v->completions[i];
	while (cause.status == IBV_WC_WR_FLUSH_ERR && ibv_poll_cq(v->cq, 1, &wc) == 1)
		if (wc.status != IBV_WC_SUCCESS)
			cause = wc;
	/* Silence of the peer may be the own port's: that is asked before the peer is blamed. */
	if (verbs_wc_is_silence(cause.status)) {
		int e = verbs_check(&v->session);

		if (e < 0)
			return e;
	}
	return verbs_wc_failure(&cause, &v->device, v->peer_name);
}

/* Cold: the reason may lie in the completion queue, as the failed completion that broke the queue pair. */
__attribute__((noinline, cold)) int verbs_post_failed(struct verbs_session *v, const char *what, int error) {
	struct ibv_wc wc;

	while (ibv_poll_cq(v->cq, 1, &wc) == 1)
		if (wc.status != IBV_WC_SUCCESS)
			return verbs_work_failed(v, &wc);
	return failure(-EIO, EXIT_INTERNAL,
		       "verbs, device %s: cannot post a %s: %s; the device may have gone: see the kernel's log",
		       v->device.name, what, strerror(error));
}

/* Hands a post list to the device. */
inline int verbs_ring_doorbell(struct verbs_session *v, struct verbs_queue *q) {
	int e = ibv_post_send(q->qp, q->first, &v->bad);

	q->first = q->last = NULL;
	return likely(e == 0) ? 0 : verbs_post_failed(v, "message", e);
}

int verbs_post(struct session *s, const struct work *work) {
	struct verbs_session *v = verbs_session(s);
	struct verbs_queue *q;
	struct ibv_send_wr *w;
	int e;

	if (v->moves)
		return verbs_transfer_post(v, work);
	q = v->queues + v->channels[work->slot];
	w = v->requests + work->slot;
	if (unlikely(q->head - q->tail == v->send_depth)) {
		e = q->first ? verbs_ring_doorbell(v, q) : 0;
		return e < 0 ? e : -EAGAIN;
	}
	if (v->atomics) {
		w->wr.atomic.compare_add = v->job->op == OP_FETCH_ADD ? work->operand : work->compare;
		w->wr.atomic.swap = work->operand;
	}
	if (s->stamps && work->notify)
		arena_tx(&v->arena, work->slot)[work->size - 1] = stamp_of(v->stamps_sent++);

	w->wr_id = (uint64_t) q->number << 32 | q->head;
	w->send_flags = v->send_flags;
	if (++q->unsignalled >= v->moderation || work->flush) {
		w->send_flags |= IBV_SEND_SIGNALED;
		q->unsignalled = 0;
	}
	q->ring[q->head++ & v->ring_mask] = v->silent ? VERBS_NO_SLOT : work->slot;

	w->next = NULL;
	if (q->last)
		q->last->next = w;
	else
		q->first = w;
	q->last = w;
	if (!work->more) {
		e = verbs_ring_doorbell(v, q);
		if (unlikely(e < 0))
			return e;
	}
	return v->silent;
}

/* A write with immediate takes a receive, without payload: what it says is where the payload is. */
int verbs_post_receive(struct session *s, uint32_t slot, uint64_t size) {
	struct verbs_session *v = verbs_session(s);
	struct ibv_sge places[2];
	struct ibv_recv_wr *bad, w = { .wr_id = VERBS_ID_RECEIVE | slot, .sg_list = places };
	int e;

	if (s->stamps)
		return 0;
	if (v->datagrams)
		places[w.num_sge++] = (struct ibv_sge) { (uintptr_t) v->grh, VERBS_GRH_BYTES, v->grh_mr->lkey };
	if (op_is_send(v->job->op))
		places[w.num_sge++] = (struct ibv_sge) { (uintptr_t) arena_rx(&v->arena, slot), (uint32_t) size,
							 v->rx_key };
	e = v->srq ? ibv_post_srq_recv(v->srq, &w, &bad) : ibv_post_recv(v->queues[v->channels[slot]].qp, &w, &bad);
	return likely(e == 0) ? 0 : verbs_post_failed(v, "receive", e);
}

static uint32_t channel_of_number(const struct verbs_session *v, uint32_t number) {
	uint32_t i = number & v->number_mask;

	while (v->channel_of_number[i] && v->queues[v->channel_of_number[i] - 1].qp->qp_num != number)
		i = (i + 1) & v->number_mask;
	return v->channel_of_number[i] ? v->channel_of_number[i] - 1u : 0;
}

/*
 * The number was chosen by the peer: it indexes our memory and is checked.
 * With --verify it is payload, too: reliable messages come in order, so that it is known which one this must be.
 */
static int check_immediate(struct verbs_session *v, const struct ibv_wc *wc, struct completion *c) {
	uint32_t slot = be32toh(wc->imm_data);
	uint64_t number = v->queues[c->channel].arrivals++;

	if (unlikely(!(wc->wc_flags & IBV_WC_WITH_IMM) || slot >= v->slots))
		return failure(-EPROTO, EXIT_PEER, "verbs: the peer's message carries %s immediate data (slot %u "
			       "of %u); is it the same version of perch?",
			       wc->wc_flags & IBV_WC_WITH_IMM ? "impossible" : "no", slot, v->slots);
	if (v->job->verify && !v->lossy && slot != job_sequence(v->job, c->channel, number) % v->slots)
		return failure(-EBADMSG, EXIT_CORRUPT, "payload corrupted: the immediate data of message %llu of queue "
			       "pair %u names slot %u instead of %llu; do not trust this path with data",
			       (unsigned long long) number, c->channel, slot,
			       (unsigned long long) (job_sequence(v->job, c->channel, number) % v->slots));
	if (v->job->op == OP_WRITE_IMM)
		c->slot = slot;
	return 1;
}

/* 1: handed out; 0: dropped, since it is no message of this phase; negative: said. */
static inline int arrived(struct verbs_session *v, const struct ibv_wc *wc, struct completion *ret) {
	uint32_t slot = (uint32_t) wc->wr_id;

	*ret = (struct completion) {
		.kind = COMPLETION_RECEIVE,
		.slot = slot,
		.channel = v->srq ? channel_of_number(v, wc->qp_num) : v->channels[slot],
	};
	if (unlikely(v->received_bytes && wc->byte_len != v->received_bytes)) {
		/* A late datagram of the size before this one is as good as lost. */
		if (v->lossy)
			return verbs_post_receive(&v->session, slot, v->arena.slot_bytes);
		return failure(-EPROTO, EXIT_PEER, "verbs: the peer sent a message of %u bytes instead of %u; "
			       "is it the same version of perch?", wc->byte_len, v->received_bytes);
	}
	return v->immediate ? check_immediate(v, wc, ret) : 1;
}

/*
 * Hands out what the completions taken from the queue stand for, as far as there is room.
 * A queue pair works in order: before one that failed all are complete, and are handed out before the failure is said,
 * so that it is known how many they were.
 */
static inline int hand_out(struct verbs_session *v, struct completion *ret, unsigned max) {
	unsigned n = 0;
	int e;

	for (; v->next_completion < v->n_completions && n < max; v->next_completion++) {
		const struct ibv_wc *wc = v->completions + v->next_completion;
		const bool failed = wc->status != IBV_WC_SUCCESS;
		struct verbs_queue *q;
		uint32_t end;

		if (wc->wr_id & VERBS_ID_RECEIVE) {
			if (unlikely(failed))
				return n > 0 ? (int) n : verbs_work_failed(v, wc);
			e = arrived(v, wc, ret + n);
			if (unlikely(e < 0))
				return e;
			n += (unsigned) e;
			continue;
		}
		q = v->queues + (wc->wr_id >> 32);
		end = (uint32_t) wc->wr_id + !failed;
		for (; q->tail != end && n < max; q->tail++) {
			uint32_t slot = q->ring[q->tail & v->ring_mask];

			if (slot != VERBS_NO_SLOT)
				ret[n++] = (struct completion) { .kind = COMPLETION_LOCAL, .slot = slot,
								 .channel = q->number };
		}
		if (q->tail != end)
			return (int) n; /* the rest of it comes with the next call */
		if (unlikely(failed))
			return n > 0 ? (int) n : verbs_work_failed(v, wc);
	}
	return (int) n;
}

/* What only the device itself knows: it was unplugged, its port went down. */
static int look_at_device(struct verbs_session *v) {
	struct ibv_async_event event;
	int e = 0;

	v->empty_polls = 0;
	while (e == 0 && poll(&(struct pollfd) { .fd = v->device.context->async_fd, .events = POLLIN }, 1, 0) > 0) {
		if (ibv_get_async_event(v->device.context, &event) != 0)
			return 0;
		e = verbs_event_failure(&event, &v->device);
		ibv_ack_async_event(&event);
	}
	return e;
}

int verbs_check(struct session *s) {
	struct verbs_session *v = verbs_session(s);
	int e = look_at_device(v);

	return e < 0 ? e : verbs_local_failure(&v->device);
}

/* Cold. */
static int poll_empty(struct verbs_session *v, int n) __attribute__((noinline, cold));

static int poll_empty(struct verbs_session *v, int n) {
	if (n == 0)
		return look_at_device(v);
	return failure(-EIO, EXIT_INTERNAL, "verbs, device %s: the completion queue cannot be read; "
		       "the device may have gone: see the kernel's log", v->device.name);
}

/* Looks at memory for the stamp that is next. It is written last: the peer's writes are placed in order. */
static inline bool stamp_arrived(struct verbs_session *v, struct completion *ret) {
	/* Of a power of two many slots, of which the last stamp is never the next one again: 255 divides none. */
	const uint32_t slot = (uint32_t) v->stamps_seen & (v->slots - 1);
	const uint8_t *const place = stamp_place(v, slot), wanted = stamp_of(v->stamps_seen);

	for (unsigned i = 0; i < STAMP_SPINS; i++)
		if (__atomic_load_n(place, __ATOMIC_ACQUIRE) == wanted) {
			v->stamps_seen++;
			*ret = (struct completion) { .kind = COMPLETION_RECEIVE, .slot = slot };
			return true;
		}
	return false;
}

int verbs_poll(struct session *s, struct completion *ret, unsigned max) {
	struct verbs_session *v = verbs_session(s);
	int n;

	if (s->stamps && stamp_arrived(v, ret))
		return 1;
	/*
	 * Until there is something, or the queue is empty:
	 * it makes no event for what already lies in it when it is armed.
	 */
	do {
		if (v->next_completion == v->n_completions) {
			n = ibv_poll_cq(v->cq, VERBS_POLL_BATCH, v->completions);
			if (n <= 0)
				return likely(n == 0 && ++v->empty_polls < EVENT_EVERY) ? 0 : poll_empty(v, n);
			v->next_completion = 0;
			v->n_completions = (unsigned) n;
		}
		n = v->counts ? verbs_rate_count(v, ret, max) : hand_out(v, ret, max);
	} while (unlikely(n == 0));
	return n;
}

/* Events are acknowledged in batches; all must be, or the completion queue can never be destroyed. */
static void take_event(struct verbs_session *v) {
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(v->channel, &cq, &context) != 0)
		return;
	v->armed = false;
	if (++v->events < VERBS_ACK_EVENTS)
		return;
	ibv_ack_cq_events(v->cq, v->events);
	v->events = 0;
}

int verbs_arm(struct session *s, struct completion *ret, unsigned max, struct pollfd alarms[BACKEND_ALARMS]) {
	struct verbs_session *v = verbs_session(s);
	int n = 0;

	if (alarms[0].revents)
		take_event(v);
	if (alarms[1].revents)
		n = look_at_device(v);
	alarms_clear(alarms, BACKEND_ALARMS);
	/* Receives that the peer has lent may be all that the caller waits for: it posts before it sleeps. */
	v->credited = false;
	if (n == 0)
		n = verbs_poll(s, ret, max);
	if (n == 0 && !v->credited && !v->armed) {
		n = ibv_req_notify_cq(v->cq, 0);
		if (n != 0)
			return failure(-EIO, EXIT_INTERNAL, "verbs, device %s: cannot arm the completion queue: %s",
				       v->device.name, strerror(n));
		v->armed = true;
		/* What came before it was armed makes no event. */
		n = verbs_poll(s, ret, max);
	}
	if (n != 0 || v->credited)
		return n ? n : -EAGAIN;
	alarms[0] = (struct pollfd) { .fd = v->channel->fd, .events = POLLIN };
	alarms[1] = (struct pollfd) { .fd = v->device.context->async_fd, .events = POLLIN };
	return 0;
}

int verbs_wait(struct session *s, struct completion *ret, unsigned max, uint64_t timeout_ns) {
	return backend_wait(s, ret, max, timeout_ns, verbs_session(s)->wake_fd);
}
