/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics: one element a call, and the operations and types that Cassini has (cxip_atomic.c's table). */
#include "sim.h"

#define FLAGS \
	(FI_INJECT | FI_COMPLETION | SIM_LEVELS | FI_MORE | FI_FENCE | FI_REMOTE_CQ_DATA | SIM_HRP | SIM_UNRELIABLE)

enum kind { PLAIN, FETCHING, COMPARING };

/*
 * A bit for each type, in libfabric's order: eight integers, two reals, float complex.
 * Cassini has double complex too (0xfff), but a process whose ofi_rxm (1.17) is sent one crashes.
 */
enum { INTEGERS = 0x0ff, REALS = 0x3ff, ALL = 0x7ff };

static const uint16_t valid[3][FI_ATOMIC_OP_LAST] = {
	[PLAIN] = {
		[FI_MIN] = REALS, [FI_MAX] = REALS, [FI_SUM] = ALL,
		[FI_LOR] = INTEGERS, [FI_LAND] = INTEGERS, [FI_LXOR] = INTEGERS,
		[FI_BOR] = INTEGERS, [FI_BAND] = INTEGERS, [FI_BXOR] = INTEGERS,
		[FI_ATOMIC_WRITE] = ALL,
	},
	[FETCHING] = {
		[FI_MIN] = REALS, [FI_MAX] = REALS, [FI_SUM] = ALL,
		[FI_LOR] = INTEGERS, [FI_LAND] = INTEGERS, [FI_LXOR] = INTEGERS,
		[FI_BOR] = INTEGERS, [FI_BAND] = INTEGERS, [FI_BXOR] = INTEGERS,
		[FI_ATOMIC_WRITE] = ALL, [FI_ATOMIC_READ] = ALL,
	},
	[COMPARING] = {
		[FI_CSWAP] = ALL, [FI_CSWAP_NE] = ALL,
		[FI_CSWAP_LE] = REALS, [FI_CSWAP_LT] = REALS, [FI_CSWAP_GE] = REALS, [FI_CSWAP_GT] = REALS,
		[FI_MSWAP] = INTEGERS,
	},
};

static const uint8_t sizes[] = { 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8 };

static int check(enum kind kind, enum fi_datatype type, enum fi_op op) {
	if ((unsigned) op >= FI_ATOMIC_OP_LAST || (unsigned) type >= FI_DATATYPE_LAST)
		return -FI_EINVAL;
	return valid[kind][op] & (1u << type) ? 0 : -FI_EOPNOTSUPP;
}

static int answer(enum kind kind, enum fi_datatype type, enum fi_op op, size_t *count) {
	int r = check(kind, type, op);

	if (r == 0 && count)
		*count = 1;
	return r;
}

struct request {
	struct fi_msg_atomic m;
	struct fi_ioc operand, compare, result;
	struct fi_rma_ioc rma;
	uint64_t flags;
	enum kind kind;
	bool silent;
};

static ssize_t post(struct sim_endpoint *ep, struct request *q) {
	struct sim_shadow *shadow = NULL;
	uint64_t flags = q->flags & FI_COMPLETION;
	ssize_t r;

	q->m.msg_iov = &q->operand;
	q->m.rma_iov = &q->rma;
	q->m.iov_count = q->m.rma_iov_count = 1;
	q->m.desc = NULL;
	if (q->silent || (q->flags & FI_INJECT)) {
		shadow = sim_shadow_take(ep->tx, q->operand.addr, sizes[q->m.datatype], q->m.context,
					 !q->silent && sim_completes(ep, q->flags));
		if (!shadow)
			return -FI_EAGAIN;
		q->operand.addr = shadow->bytes;
		q->m.context = shadow;
		flags |= FI_COMPLETION;
	}
	if (q->kind == PLAIN)
		r = fi_atomicmsg(ep->inner, &q->m, flags);
	else if (q->kind == FETCHING)
		r = fi_fetch_atomicmsg(ep->inner, &q->m, &q->result, NULL, 1, flags);
	else
		r = fi_compare_atomicmsg(ep->inner, &q->m, &q->compare, NULL, 1, &q->result, NULL, 1, flags);
	if (r && shadow)
		sim_shadow_return(ep->tx, shadow);
	return r;
}

static bool one(const struct fi_ioc *v, bool needed) {
	return v->count == 1 && (v->addr || !needed);
}

static int check_request(const struct request *q) {
	/* the device has single elements only; a read brings no operand */
	if (!one(&q->operand, q->m.op != FI_ATOMIC_READ) || (q->kind != PLAIN && !one(&q->result, true)) ||
	    (q->kind == COMPARING && !one(&q->compare, true)))
		return -FI_EINVAL;
	if (q->flags & ~FLAGS)
		return -FI_EBADFLAGS;
	/* "Unreliable, fetching AMOs are not supported"; "HRP AMOs must also use the FI_CXI_UNRELIABLE flag" */
	if ((q->kind != PLAIN && (q->flags & (SIM_UNRELIABLE | SIM_HRP))) ||
	    ((q->flags & SIM_HRP) && !(q->flags & SIM_UNRELIABLE)))
		return -FI_EINVAL;
	/* ERRATA: "Fetch and compare type AMOs with FI_DELIVERY_COMPLETE or FI_MATCH_COMPLETE ... are not supported" */
	if (q->kind != PLAIN && (q->flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)))
		return -FI_EINVAL;
	if (!(q->rma.key & SIM_KEY_PROVIDER) && q->rma.key > SIM_KEY_CLIENT_MAX)
		return -FI_EKEYREJECTED;
	return check(q->kind, q->m.datatype, q->m.op);
}

static ssize_t locked(struct sim_endpoint *ep, struct request *q) {
	uint64_t what = FI_ATOMIC | (q->m.op == FI_ATOMIC_READ ? FI_READ : FI_WRITE), access = FI_REMOTE_WRITE,
		offset = q->rma.addr;
	static const uint64_t zero[2];
	const struct sim_region *g = NULL;
	struct sim_peer *peer;
	enum sim_rc why;
	ssize_t r;

	r = check_request(q);
	if (r == 0)
		r = sim_reach(ep, q->m.addr, &peer, &why);
	if (r < 0)
		return r;
	if (q->kind != PLAIN)
		access = q->m.op == FI_ATOMIC_READ ? FI_REMOTE_READ : FI_REMOTE_READ | FI_REMOTE_WRITE;
	if (r == 0)
		g = sim_target(peer, q->rma.key, offset, sizes[q->m.datatype], access, &why);
	if (g && (g->base + offset) % sizes[q->m.datatype] != 0) {
		why = RC_AMO_ALIGN_ERROR;
		g = NULL;
	}
	if (!g)
		return sim_fail(ep, q->silent ? NULL : q->m.context, what, why);
	if ((q->flags & SIM_UNRELIABLE) && !g->optimized)
		return -FI_EINVAL;
	if (!q->operand.addr)
		q->operand.addr = (void *) (uintptr_t) zero;
	q->m.addr = peer->inner;
	q->rma = (struct fi_rma_ioc) { .addr = g->inner_base + offset, .count = 1, .key = g->inner_key };
	sim_delayed_flush(ep);
	r = post(ep, q);
	if (r == 0)
		sim_model(q->silent || (q->flags & FI_INJECT) || sim_variables.idc_amo ? MODEL_idc_amo : MODEL_dma_amo);
	return r;
}

static ssize_t perform(struct fid_ep *fid, enum sim_call call, struct request *q) {
	struct sim_endpoint *ep = sim_endpoint(fid);
	ssize_t r;

	if (!(ep->info->caps & FI_ATOMIC))
		return -FI_ENOSYS;
	pthread_mutex_lock(&ep->domain->lock);
	r = locked(ep, q);
	pthread_mutex_unlock(&ep->domain->lock);
	sim_count_flags(call, q->flags, r);
	return r;
}

/* A failure of the vectors' form: the checks then see an impossible count. */
static struct fi_ioc only(const struct fi_ioc *v, size_t count) {
	return count == 1 && v ? *v : (struct fi_ioc) { .count = SIZE_MAX };
}

static struct request request(struct fid_ep *ep, enum kind kind, fi_addr_t peer, uint64_t addr, uint64_t key,
			      enum fi_datatype type, enum fi_op op, void *context) {
	uint64_t flags = sim_endpoint(ep)->op_flags;

	/* the endpoint's default level is nothing that the erratum could refuse call by call */
	if (kind != PLAIN)
		flags &= ~(FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE);
	return (struct request) {
		.m = { .addr = peer, .datatype = type, .op = op, .context = context },
		.rma = { .addr = addr, .count = 1, .key = key },
		.flags = flags,
		.kind = kind,
	};
}

static struct fi_ioc value(const void *address, size_t count) {
	return (struct fi_ioc) { .addr = (void *) (uintptr_t) address, .count = count };
}

static ssize_t atomic_write(struct fid_ep *ep, const void *buffer, size_t count, void *desc, fi_addr_t to,
			    uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
	struct request q = request(ep, PLAIN, to, addr, key, type, op, context);

	q.operand = value(buffer, count);
	return perform(ep, CALL_fi_atomic, &q);
}

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t to,
			     uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
	struct request q = request(ep, PLAIN, to, addr, key, type, op, context);

	q.operand = only(iov, count);
	return perform(ep, CALL_fi_atomicv, &q);
}

static ssize_t atomic_inject(struct fid_ep *ep, const void *buffer, size_t count, fi_addr_t to, uint64_t addr,
			     uint64_t key, enum fi_datatype type, enum fi_op op) {
	struct request q = request(ep, PLAIN, to, addr, key, type, op, NULL);

	q.operand = value(buffer, count);
	q.flags = 0;
	q.silent = true;
	return perform(ep, CALL_fi_inject_atomic, &q);
}

static ssize_t atomic_fetch(struct fid_ep *ep, const void *buffer, size_t count, void *desc, void *result,
			    void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type,
			    enum fi_op op, void *context) {
	struct request q = request(ep, FETCHING, to, addr, key, type, op, context);

	q.operand = value(buffer, count);
	q.result = value(result, count);
	return perform(ep, CALL_fi_fetch_atomic, &q);
}

static ssize_t atomic_fetchv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			     struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t to,
			     uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
	struct request q = request(ep, FETCHING, to, addr, key, type, op, context);

	q.operand = only(iov, count);
	q.result = only(resultv, result_count);
	return perform(ep, CALL_fi_fetch_atomicv, &q);
}

static ssize_t atomic_compare(struct fid_ep *ep, const void *buffer, size_t count, void *desc, const void *compare,
			      void *compare_desc, void *result, void *result_desc, fi_addr_t to, uint64_t addr,
			      uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
	struct request q = request(ep, COMPARING, to, addr, key, type, op, context);

	q.operand = value(buffer, count);
	q.compare = value(compare, count);
	q.result = value(result, count);
	return perform(ep, CALL_fi_compare_atomic, &q);
}

static ssize_t atomic_comparev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			       const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
			       struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t to,
			       uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context) {
	struct request q = request(ep, COMPARING, to, addr, key, type, op, context);

	q.operand = only(iov, count);
	q.compare = only(comparev, compare_count);
	q.result = only(resultv, result_count);
	return perform(ep, CALL_fi_compare_atomicv, &q);
}

static struct request of_message(const struct fi_msg_atomic *m, enum kind kind, uint64_t flags) {
	struct request q = { .m = *m, .flags = flags, .kind = kind, .operand = only(m->msg_iov, m->iov_count) };

	if (m->rma_iov_count == 1 && m->rma_iov && m->rma_iov->count == 1)
		q.rma = *m->rma_iov;
	else
		q.operand.count = SIZE_MAX;
	return q;
}

static ssize_t atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *m, uint64_t flags) {
	struct request q = of_message(m, PLAIN, flags);

	return perform(ep, CALL_fi_atomicmsg, &q);
}

static ssize_t atomic_fetchmsg(struct fid_ep *ep, const struct fi_msg_atomic *m, struct fi_ioc *resultv,
			       void **result_desc, size_t result_count, uint64_t flags) {
	struct request q = of_message(m, FETCHING, flags);

	q.result = only(resultv, result_count);
	return perform(ep, CALL_fi_fetch_atomicmsg, &q);
}

static ssize_t atomic_comparemsg(struct fid_ep *ep, const struct fi_msg_atomic *m, const struct fi_ioc *comparev,
				 void **compare_desc, size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, uint64_t flags) {
	struct request q = of_message(m, COMPARING, flags);

	q.compare = only(comparev, compare_count);
	q.result = only(resultv, result_count);
	return perform(ep, CALL_fi_compare_atomicmsg, &q);
}

static int valid_plain(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count) {
	return answer(PLAIN, type, op, count);
}

static int valid_fetching(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count) {
	return answer(FETCHING, type, op, count);
}

static int valid_comparing(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count) {
	return answer(COMPARING, type, op, count);
}

int sim_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags) {
	enum kind kind = flags & FI_COMPARE_ATOMIC ? COMPARING : flags & FI_FETCH_ATOMIC ? FETCHING : PLAIN;
	int r;

	if (flags & ~(FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC))
		return -FI_EINVAL;
	r = answer(kind, type, op, &attr->count);
	if (r == 0)
		attr->size = sizes[type];
	return r;
}

struct fi_ops_atomic sim_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_fetch,
	.readwritev = atomic_fetchv,
	.readwritemsg = atomic_fetchmsg,
	.compwrite = atomic_compare,
	.compwritev = atomic_comparev,
	.compwritemsg = atomic_comparemsg,
	.writevalid = valid_plain,
	.readwritevalid = valid_fetching,
	.compwritevalid = valid_comparing,
};
