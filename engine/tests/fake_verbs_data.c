/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The traffic of the fake: work requests are executed when they are posted, or polled for, by copying in this process.
 */
#include <stdio.h>
#include <unistd.h>

#include "fake_verbs_internal.h"

enum { FAKE_MTU = 4096 };

int fake_req_notify_cq(struct ibv_cq *cq, int solicited) {
	int e = fake_told(FAKE_REQ_NOTIFY);

	(void) solicited;
	if (!e)
		((struct fake_cq *) cq)->armed = true;
	return e;
}

static void complete(struct ibv_cq *cq, struct entry e) {
	struct fake_cq *c = (struct fake_cq *) cq;

	if (c->head - c->tail >= (uint32_t) cq->cqe) {
		fake_violation("a completion queue overran");
		return;
	}
	c->ring[c->head++ % (uint32_t) cq->cqe] = e;
	fake.sent += e.sender != NULL;
	if (c->armed && cq->channel && write(((struct fake_channel *) cq->channel)->pipe_write, "", 1) != 1)
		abort();
	c->armed = false;
}

/* Traffic */

static struct fake_qp *queue_pair(uint32_t number) {
	return number - FIRST_QP_NUMBER < FAKE_QP_MAX ? fake_queue_pairs[number - FIRST_QP_NUMBER] : NULL;
}

static struct receive_queue *receives_of(struct fake_qp *q) {
	return q->qp.srq ? &((struct fake_srq *) q->qp.srq)->queue : &q->receives;
}

static int post_receive(struct receive_queue *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
	int e = fake_told(FAKE_POST_RECEIVE);

	*bad = wr;
	if (e)
		return e;
	for (; wr; wr = wr->next) {
		struct receive *r = q->ring + q->head % MAX(q->depth, 1u);

		if (q->head - q->tail >= q->depth || wr->num_sge > (int) q->max_sge || wr->num_sge > 2) {
			fake_violation("a receive queue overran");
			return ENOMEM;
		}
		*r = (struct receive) { .wr_id = wr->wr_id, .n = wr->num_sge };
		for (int i = 0; i < wr->num_sge; i++) {
			r->sge[i] = wr->sg_list[i];
			if (!fake_reaches(r->sge[i].lkey, r->sge[i].addr, r->sge[i].length, IBV_ACCESS_LOCAL_WRITE))
				fake_violation("a receive lies outside its region");
		}
		q->head++;
	}
	return 0;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
	if (qp->state < IBV_QPS_INIT || qp->srq)
		fake_violation("a receive is posted in the wrong state, or past the shared receive queue");
	return post_receive(&((struct fake_qp *) qp)->receives, wr, bad);
}

int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
	return post_receive(&((struct fake_srq *) srq)->queue, wr, bad);
}

static uint64_t scatter(const struct receive *r, uint64_t at, const uint8_t *data, uint64_t n) {
	uint64_t begin = 0;

	for (int i = 0; i < r->n && n > 0; i++) {
		uint64_t end = begin + r->sge[i].length, part;

		if (at < end) {
			part = MIN(n, end - at);
			memcpy((uint8_t *) (uintptr_t) r->sge[i].addr + (at - begin), data, part);
			at += part;
			data += part;
			n -= part;
		}
		begin = end;
	}
	return n; /* what did not fit */
}

/* Fills one receive of the target. False: it has none ready. */
static bool deliver(struct fake_qp *to, const struct sending *s, const uint8_t *data, uint32_t from,
		    uint32_t write_length, bool *ret_too_long) {
	static const uint8_t grh[40];
	struct receive_queue *q = receives_of(to);
	bool ud = to->qp.qp_type == IBV_QPT_UD,
		imm = s->wr.opcode == IBV_WR_SEND_WITH_IMM || s->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_wc wc = { .qp_num = to->qp.qp_num, .src_qp = from,
			     .opcode = write_length ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV };
	const struct receive *r = q->ring + q->tail % MAX(q->depth, 1u);

	*ret_too_long = false;
	if (q->head == q->tail)
		return false;
	q->tail++;
	wc.wr_id = r->wr_id;
	wc.byte_len = write_length ? write_length : s->sge.length + (ud ? (uint32_t) sizeof(grh) : 0);
	if (imm) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = s->wr.imm_data;
	}
	if (ud) {
		wc.wc_flags |= IBV_WC_GRH;
		(void) scatter(r, 0, grh, sizeof(grh));
	}
	if (!write_length && scatter(r, ud ? sizeof(grh) : 0, data, s->sge.length) > 0) {
		wc.status = IBV_WC_LOC_LEN_ERR;
		*ret_too_long = true;
	}
	complete(to->qp.recv_cq, (struct entry) { .wc = wc });
	return true;
}

static enum ibv_wc_status do_atomic(const struct sending *s) {
	uint64_t *word = (uint64_t *) (uintptr_t) s->wr.wr.atomic.remote_addr, before;

	if (s->sge.length != sizeof(*word) || s->wr.wr.atomic.remote_addr % sizeof(*word) ||
	    !fake_reaches(s->wr.wr.atomic.rkey, s->wr.wr.atomic.remote_addr, sizeof(*word), IBV_ACCESS_REMOTE_ATOMIC))
		return IBV_WC_REM_ACCESS_ERR;
	before = *word;
	if (s->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		*word += s->wr.wr.atomic.compare_add;
	else if (before == s->wr.wr.atomic.compare_add)
		*word = s->wr.wr.atomic.swap;
	memcpy((void *) (uintptr_t) s->sge.addr, &before, sizeof(before));
	return IBV_WC_SUCCESS;
}

/* A packet of another partition, or of a limited member to another, is dropped. */
static bool in_one_partition(const struct fake_qp *a, const struct fake_qp *b) {
	enum { FULL = 0x8000 };

	return !a->pkey || !b->pkey || (((a->pkey ^ b->pkey) & ~FULL) == 0 && (a->pkey | b->pkey) & FULL);
}

/* Executes one work request. *ret_wait: the receiver is not ready, and a reliable sender tries again. */
static enum ibv_wc_status execute(struct fake_qp *q, const struct sending *s, bool *ret_wait) {
	bool ud = q->qp.qp_type == IBV_QPT_UD, lossy = q->qp.qp_type != IBV_QPT_RC, too_long = false;
	struct fake_qp *to = queue_pair(ud ? s->wr.wr.ud.remote_qpn : q->destination);
	const uint8_t *data = s->copy ? s->copy : (const uint8_t *) (uintptr_t) s->sge.addr;

	*ret_wait = false;
	if (fake.next_status && fake.status_skip > 0) {
		fake.status_skip--;
	} else if (fake.next_status) {
		enum ibv_wc_status status = fake.next_status;

		fake.next_status = IBV_WC_SUCCESS;
		return status;
	}
	if (!s->copy && s->sge.length > 0 && !fake_reaches(s->sge.lkey, s->sge.addr, s->sge.length, 0))
		return IBV_WC_LOC_PROT_ERR;
	if (lossy && fake.lose_every && ++q->lost % fake.lose_every == 0)
		return IBV_WC_SUCCESS;
	if (!to || to->qp.state < IBV_QPS_RTR || !in_one_partition(q, to) ||
	    (ud && s->wr.wr.ud.remote_qkey != to->qkey))
		return lossy ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR;
	if (ud && s->sge.length > FAKE_MTU)
		return IBV_WC_LOC_LEN_ERR;
	switch (s->wr.opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		if (!deliver(to, s, data, q->qp.qp_num, 0, &too_long)) {
			*ret_wait = !lossy;
			fake.not_ready += !lossy;
			return IBV_WC_SUCCESS;
		}
		return too_long && !lossy ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		if (!(to->access & IBV_ACCESS_REMOTE_WRITE) ||
		    !fake_reaches(s->wr.wr.rdma.rkey, s->wr.wr.rdma.remote_addr, s->sge.length,
				  IBV_ACCESS_REMOTE_WRITE))
			return lossy ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
		if (s->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM && receives_of(to)->head == receives_of(to)->tail) {
			/* Only the last packet asks for a receive: the others are in memory by then. */
			if (s->sge.length > FAKE_MTU)
				memcpy((void *) (uintptr_t) s->wr.wr.rdma.remote_addr, data,
				       (s->sge.length - 1) / FAKE_MTU * FAKE_MTU);
			*ret_wait = !lossy;
			fake.not_ready += !lossy;
			return IBV_WC_SUCCESS;
		}
		memcpy((void *) (uintptr_t) s->wr.wr.rdma.remote_addr, data, s->sge.length);
		if (fake.corrupt)
			*(uint8_t *) (uintptr_t) s->wr.wr.rdma.remote_addr ^= 1;
		fake.corrupt = false;
		if (s->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			(void) deliver(to, s, data, q->qp.qp_num, s->sge.length, &too_long);
		return IBV_WC_SUCCESS;
	case IBV_WR_RDMA_READ:
		if (lossy || !(to->access & IBV_ACCESS_REMOTE_READ) ||
		    !fake_reaches(s->wr.wr.rdma.rkey, s->wr.wr.rdma.remote_addr, s->sge.length, IBV_ACCESS_REMOTE_READ))
			return IBV_WC_REM_ACCESS_ERR;
		memcpy((void *) (uintptr_t) s->sge.addr, (const void *) (uintptr_t) s->wr.wr.rdma.remote_addr,
		       s->sge.length);
		return IBV_WC_SUCCESS;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return lossy || !(to->access & IBV_ACCESS_REMOTE_ATOMIC) ? IBV_WC_REM_INV_REQ_ERR : do_atomic(s);
	default:
		return IBV_WC_LOC_QP_OP_ERR;
	}
}

static void flush(struct fake_qp *q) {
	struct receive_queue *r = &q->receives;

	q->qp.state = IBV_QPS_ERR;
	for (; q->tail != q->head; q->tail++) {
		struct sending *s = q->sends + q->tail % q->cap.max_send_wr;

		complete(q->qp.send_cq, (struct entry) { { .wr_id = s->wr.wr_id, .status = IBV_WC_WR_FLUSH_ERR,
							   .qp_num = q->qp.qp_num }, q, s->covers });
		free(s->copy);
		s->copy = NULL;
	}
	for (; r->tail != r->head; r->tail++)
		complete(q->qp.recv_cq,
			 (struct entry) { .wc = { .wr_id = r->ring[r->tail % r->depth].wr_id,
						  .status = IBV_WC_WR_FLUSH_ERR, .qp_num = q->qp.qp_num } });
}

/* Executes what can be executed. */
static void progress(struct fake_qp *q) {
	bool wait;

	while (q->tail != q->head && q->qp.state == IBV_QPS_RTS) {
		struct sending *s = q->sends + q->tail % q->cap.max_send_wr;
		enum ibv_wc_status status = execute(q, s, &wait);

		if (wait)
			return;
		free(s->copy);
		s->copy = NULL;
		q->tail++;
		if (status || s->wr.send_flags & IBV_SEND_SIGNALED)
			complete(q->qp.send_cq,
				 (struct entry) { { .wr_id = s->wr.wr_id, .status = status, .qp_num = q->qp.qp_num,
						    .vendor_err = status ? 0x81 : 0 }, q, s->covers });
		if (status)
			flush(q);
	}
}

static int post_one(struct fake_qp *q, const struct ibv_send_wr *wr) {
	struct sending *s = q->sends + q->head % q->cap.max_send_wr;

	if (q->busy >= q->cap.max_send_wr || q->qp.state < IBV_QPS_RTS || wr->num_sge > 1) {
		fake_violation("a send queue overran, or is not ready to send");
		return ENOMEM;
	}
	*s = (struct sending) { .wr = *wr };
	if (wr->num_sge > 0)
		s->sge = wr->sg_list[0];
	s->wr.next = NULL;
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (s->sge.length > q->cap.max_inline_data) {
			fake_violation("more is sent inline than the queue pair takes");
			return EINVAL;
		}
		s->copy = malloc(MAX(s->sge.length, 1u));
		memcpy(s->copy, (const void *) (uintptr_t) s->sge.addr, s->sge.length);
	}
	q->busy++;
	q->unsignalled++;
	s->covers = q->unsignalled;
	if (wr->send_flags & IBV_SEND_SIGNALED)
		q->unsignalled = 0;
	q->head++;
	return 0;
}

int fake_post_list(struct fake_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
	int e = 0;

	for (; wr && e == 0; wr = wr->next) {
		*bad = wr;
		e = post_one(q, wr);
	}
	if (q->qp.state == IBV_QPS_ERR)
		flush(q);
	progress(q);
	return e;
}

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
	struct fake_qp *q = (struct fake_qp *) qp;
	int e = fake_told(FAKE_POST_SEND);

	if (q->list)
		/* a driver would wait for its own lock */
		fake_violation("ibv_post_send() within ibv_wr_start() and ibv_wr_complete()");
	*bad = wr;
	return e ? e : fake_post_list(q, wr, bad);
}

int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *ret) {
	struct fake_cq *c = (struct fake_cq *) cq;
	int taken = 0;

	if (fake_told(FAKE_POLL_CQ))
		return -1;
	for (uint32_t i = 0; i < FAKE_QP_MAX; i++)
		if (fake_queue_pairs[i])
			progress(fake_queue_pairs[i]);
	for (; taken < n && c->tail != c->head; c->tail++, taken++) {
		const struct entry *e = c->ring + c->tail % (uint32_t) cq->cqe;

		if (e->sender)
			e->sender->busy -= MIN(e->covers, e->sender->busy);
		ret[taken] = e->wc;
	}
	return taken;
}
