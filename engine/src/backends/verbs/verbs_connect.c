/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a queue pair to "ready to send", by what the peer's address says (ibv_modify_qp(3)
 * lists what each step needs).
 */
#include "verbs.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/message.h"

static int modify_failed(struct verbs_session *v, int error, const struct verbs_queue *q, const char *to) {
	char what[96], gid[INET6_ADDRSTRLEN];

	/* The neighbour's hardware address is looked up here: what fails then is the path, not this host. */
	if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH) {
		verbs_gid_text(&v->remote_gid, gid);
		return failure(-error, EXIT_PEER, "verbs, device %s, GID index %d (%s): "
			       "no route to GID %s of the peer (control address %s): %s; ping from one address "
			       "to the other, or choose others with --gid-index and --server-gid-index", v->device.name,
			       v->device.gid_index, v->device.address, gid, v->peer_name, strerror(error));
	}
	(void) snprintf(what, sizeof(what), "bring queue pair %u of %u to %s", q->number + 1, v->n_queues, to);
	return verbs_call_failure(error, &v->device, what);
}

static int to_init(struct verbs_session *v, struct verbs_queue *q) {
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = v->device.pkey_index,
		.port_num = v->device.port,
		.qkey = v->queue_key,
		.qp_access_flags = (unsigned) verbs_access(v->job->op, false) & ~(unsigned) IBV_ACCESS_LOCAL_WRITE,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT, e;

	mask |= v->datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	e = ibv_modify_qp(q->qp, &a, mask);
	return e ? modify_failed(v, e, q, "INIT") : 0;
}

int verbs_init_queues(struct verbs_session *v) {
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < v->n_queues; i++)
		r = to_init(v, v->queues + i);
	return r;
}

static struct ibv_ah_attr address_vector(const struct verbs_session *v) {
	struct ibv_ah_attr a = {
		.dlid = v->remote_lid,
		.sl = (uint8_t) v->sl,
		.port_num = v->device.port,
		.is_global = v->device.use_grh,
	};

	if (a.is_global)
		a.grh = (struct ibv_global_route) {
			.dgid = v->remote_gid,
			.sgid_index = (uint8_t) v->device.gid_index,
			.hop_limit = VERBS_HOP_LIMIT,
			.traffic_class = (uint8_t) v->traffic_class,
		};
	return a;
}

static int to_ready_to_receive(struct verbs_session *v, struct verbs_queue *q) {
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };
	int mask = IBV_QP_STATE, e;

	if (!v->datagrams) {
		a.ah_attr = address_vector(v);
		a.path_mtu = verbs_mtu_from_bytes(v->path_mtu);
		a.dest_qp_num = q->remote_number;
		a.rq_psn = (v->remote_psn + q->number) & PSN_MASK;
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (v->reliable) {
		a.max_dest_rd_atomic = (uint8_t) MIN(v->device.attr.max_qp_rd_atom, UINT8_MAX);
		a.min_rnr_timer = VERBS_MIN_RNR_TIMER;
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	e = ibv_modify_qp(q->qp, &a, mask);
	return e ? modify_failed(v, e, q, "RTR") : 0;
}

static int to_ready_to_send(struct verbs_session *v, struct verbs_queue *q) {
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .sq_psn = (v->first_psn + q->number) & PSN_MASK };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN, e;

	if (v->reliable) {
		a.timeout = (uint8_t) v->job->verbs.timeout_exponent;
		a.retry_cnt = (uint8_t) v->job->verbs.retry;
		a.rnr_retry = (uint8_t) v->job->verbs.rnr_retry;
		a.max_rd_atomic = v->read_depth;
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	e = ibv_modify_qp(q->qp, &a, mask);
	return e ? modify_failed(v, e, q, "RTS") : 0;
}

static int make_address_handle(struct verbs_session *v, struct verbs_queue *q) {
	struct ibv_ah_attr a = address_vector(v);

	q->ah = ibv_create_ah(v->pd, &a);
	return q->ah ? 0 : modify_failed(v, errno, q, "an address of its peer");
}

int verbs_connect_queues(struct verbs_session *v) {
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < v->n_queues; i++) {
		struct verbs_queue *q = v->queues + i;

		r = to_ready_to_receive(v, q);
		if (r == 0)
			r = to_ready_to_send(v, q);
		if (r == 0 && v->datagrams)
			r = make_address_handle(v, q);
	}
	return r;
}
