/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Post lists through the ibv_wr calls (ibv_wr_post(3)): each message is written to the device's queue as it comes,
 * and one call at the end rings the doorbell. A linked list for ibv_post_send() would be written,
 * and read again by the driver.
 */
#include "verbs.h"

static uint64_t operation(enum op op) {
	return op == OP_READ ? IBV_QP_EX_WITH_RDMA_READ : op == OP_SEND ? IBV_QP_EX_WITH_SEND
		: IBV_QP_EX_WITH_RDMA_WRITE;
}

struct ibv_qp *verbs_wr_create(struct verbs_session *v, struct verbs_queue *q, struct ibv_qp_init_attr *attr) {
	struct ibv_qp_init_attr_ex a = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
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

/* What is the same for a whole list is decided before it: a message costs two calls of the device's provider. */
void verbs_wr_list(struct verbs_session *v, struct verbs_queue *q, const struct verbs_move *m, uint32_t n,
		   bool signalled) {
	struct ibv_qp_ex *wr = q->wr;
	const uint64_t id = (uint64_t) q->number << 32, remote = v->remote_base;
	const enum op op = v->job->op;
	const bool inlined = m->bytes <= v->inline_bytes;
	const unsigned flags = inlined ? IBV_SEND_INLINE : 0u;
	const uint32_t key = v->tx_key, remote_key = v->remote_key, bytes = m->bytes;
	uint8_t *local = v->arena.tx;

	ibv_wr_start(wr);
	q->building = true;
	wr->wr_flags = flags;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t offset = m[i].offset;

		wr->wr_id = id | q->head++;
		if (i + 1 == n && signalled)
			wr->wr_flags = flags | IBV_SEND_SIGNALED;
		if (op == OP_WRITE)
			ibv_wr_rdma_write(wr, remote_key, remote + offset);
		else if (op == OP_READ)
			ibv_wr_rdma_read(wr, remote_key, remote + offset);
		else
			ibv_wr_send(wr);
		if (inlined)
			ibv_wr_set_inline_data(wr, local + offset, bytes);
		else
			ibv_wr_set_sge(wr, key, (uintptr_t) local + offset, bytes);
	}
}

void verbs_wr_add(struct verbs_session *v, struct verbs_queue *q, const struct verbs_move *m, bool signalled) {
	struct ibv_qp_ex *wr = q->wr;
	const uint64_t remote = v->remote_base + m->offset;
	const bool inlined = m->bytes <= v->inline_bytes;
	uint8_t *local = v->arena.tx + m->offset;

	if (!q->building)
		ibv_wr_start(wr);
	q->building = true;
	wr->wr_id = (uint64_t) q->number << 32 | q->head;
	/* Soft-RoCE's kernel looks for inline data only where the flag is set; others know it from the call. */
	wr->wr_flags = (signalled ? IBV_SEND_SIGNALED : 0u) | (inlined ? IBV_SEND_INLINE : 0u);
	if (v->job->op == OP_READ)
		ibv_wr_rdma_read(wr, v->remote_key, remote);
	else
		ibv_wr_rdma_write(wr, v->remote_key, remote);
	if (inlined)
		ibv_wr_set_inline_data(wr, local, m->bytes);
	else
		ibv_wr_set_sge(wr, v->tx_key, (uintptr_t) local, m->bytes);
}

/* When it fails, nothing of the list was posted. */
int verbs_wr_ring(struct verbs_queue *q) {
	q->building = false;
	return ibv_wr_complete(q->wr);
}

void verbs_wr_abort(struct verbs_queue *q) {
	q->building = false;
	ibv_wr_abort(q->wr);
}
