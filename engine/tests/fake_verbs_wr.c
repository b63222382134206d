/* SPDX-License-Identifier: Apache-2.0 */
/* The ibv_wr calls of the fake (ibv_wr_post(3)): a list is collected between start and complete, and posted as one. */
#include <stdio.h>

#include "fake_verbs_internal.h"

static const uint64_t WR_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND;

struct fake_list {
	struct ibv_send_wr *requests;   /* room for all that the queue takes */
	struct ibv_sge *places;
	uint8_t **copies;               /* of inline data: its memory is free again at once */
	uint32_t n;
	bool waits;                     /* the last request has no data yet */
	int error;                      /* said at the end */
};

static struct fake_qp *of(struct ibv_qp_ex *ex) {
	return (struct fake_qp *) ex;
}

static void close_list(struct fake_qp *q) {
	struct fake_list *l = q->list;

	for (uint32_t i = 0; i < l->n; i++)
		free(l->copies[i]);
	free(l->requests);
	free(l->places);
	free(l->copies);
	free(l);
	q->list = NULL;
}

static void wr_start(struct ibv_qp_ex *ex) {
	struct fake_qp *q = of(ex);
	const uint32_t n = q->cap.max_send_wr;

	if (q->list) {
		fake_violation("ibv_wr_start() twice"); /* a driver would wait for its own lock */
		return;
	}
	q->list = calloc(1, sizeof(*q->list));
	q->list->requests = calloc(n, sizeof(*q->list->requests));
	q->list->places = calloc(n, sizeof(*q->list->places));
	q->list->copies = calloc(n, sizeof(*q->list->copies));
}

static void add(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint64_t op, uint32_t key, uint64_t address) {
	struct fake_qp *q = of(ex);
	struct fake_list *l = q->list;

	if (!l || l->waits || !(q->wr_ops & op)) {
		fake_violation("a work request outside start and complete, after one without data, or not asked for");
		return;
	}
	if (q->busy + l->n >= q->cap.max_send_wr) {
		fake_violation("a send queue overran");
		l->error = ENOMEM;
		return;
	}
	l->requests[l->n] = (struct ibv_send_wr) {
		.wr_id = ex->wr_id, .send_flags = ex->wr_flags, .opcode = opcode, .num_sge = 1,
		.sg_list = l->places + l->n,
		.wr.rdma = { .remote_addr = address, .rkey = key },
	};
	if (l->n > 0)
		l->requests[l->n - 1].next = l->requests + l->n;
	l->n++;
	l->waits = true;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t key, uint64_t address) {
	add(ex, IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, key, address);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t key, uint64_t address) {
	add(ex, IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ, key, address);
}

static void wr_send(struct ibv_qp_ex *ex) {
	add(ex, IBV_WR_SEND, IBV_QP_EX_WITH_SEND, 0, 0);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t key, uint64_t address, uint32_t length) {
	struct fake_list *l = of(ex)->list;

	if (!l || !l->waits) {
		fake_violation("data without a work request");
		return;
	}
	l->places[l->n - 1] = (struct ibv_sge) { .addr = address, .length = length, .lkey = key };
	l->waits = false;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *data, size_t length) {
	struct fake_list *l = of(ex)->list;
	uint8_t *copy = malloc(MAX(length, (size_t) 1));

	memcpy(copy, data, length);
	wr_set_sge(ex, 0, (uintptr_t) copy, (uint32_t) length);
	if (!l || l->n == 0) {
		free(copy);
		return;
	}
	l->copies[l->n - 1] = copy;
	if (!(l->requests[l->n - 1].send_flags & IBV_SEND_INLINE))
		fake_violation("inline data without IBV_SEND_INLINE"); /* Soft-RoCE would look for it elsewhere */
}

static int wr_complete(struct ibv_qp_ex *ex) {
	struct fake_qp *q = of(ex);
	struct fake_list *l = q->list;
	struct ibv_send_wr *bad;
	int e = fake_told(FAKE_WR_COMPLETE);

	if (!l || l->waits || l->n == 0) {
		fake_violation("ibv_wr_complete() without ibv_wr_start(), of nothing, "
			       "or of a work request without data");
		return EINVAL;
	}
	if (e == 0)
		e = l->error;
	if (e == 0)
		e = fake_post_list(q, l->requests, &bad);
	close_list(q);
	return e;
}

static void wr_abort(struct ibv_qp_ex *ex) {
	if (of(ex)->list)
		close_list(of(ex));
	else
		fake_violation("ibv_wr_abort() without ibv_wr_start()");
}

struct ibv_qp *fake_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *a) {
	int e = fake_told(FAKE_CREATE_QP_EX);
	struct fake_qp *q;

	if (a->comp_mask != (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) || a->pd->context != context ||
	    a->send_ops_flags & ~WR_OPS)
		e = EOPNOTSUPP;
	if (e) {
		errno = e;
		return NULL;
	}
	/* What verbs.h does itself for a mask of the protection domain alone: the one begins with the other. */
	q = (struct fake_qp *) ibv_create_qp(a->pd, (struct ibv_qp_init_attr *) a);
	if (!q)
		return NULL;
	q->wr_ops = a->send_ops_flags;
	q->ex.wr_start = wr_start;
	q->ex.wr_rdma_write = wr_rdma_write;
	q->ex.wr_rdma_read = wr_rdma_read;
	q->ex.wr_send = wr_send;
	q->ex.wr_set_sge = wr_set_sge;
	q->ex.wr_set_inline_data = wr_set_inline_data;
	q->ex.wr_complete = wr_complete;
	q->ex.wr_abort = wr_abort;
	return &q->qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) {
	struct fake_qp *q = (struct fake_qp *) qp;

	return q->wr_ops ? &q->ex : NULL;
}
