/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomics: libfabric's three calls (fi_atomic(3)), with the operation and the type that the job asks for.
 * Each works on all words of a message; the operand is the same for each word.
 */
#include "ofi.h"

#include "base/message.h"

static const enum fi_op operations[ATOMIC_OP_MAX] = {
	[ATOMIC_MIN] = FI_MIN,           [ATOMIC_MAX] = FI_MAX,           [ATOMIC_SUM] = FI_SUM,
	[ATOMIC_PROD] = FI_PROD,         [ATOMIC_LOR] = FI_LOR,           [ATOMIC_LAND] = FI_LAND,
	[ATOMIC_BOR] = FI_BOR,           [ATOMIC_BAND] = FI_BAND,         [ATOMIC_LXOR] = FI_LXOR,
	[ATOMIC_BXOR] = FI_BXOR,         [ATOMIC_READ] = FI_ATOMIC_READ,  [ATOMIC_WRITE] = FI_ATOMIC_WRITE,
	[ATOMIC_CSWAP] = FI_CSWAP,       [ATOMIC_CSWAP_NE] = FI_CSWAP_NE, [ATOMIC_CSWAP_LE] = FI_CSWAP_LE,
	[ATOMIC_CSWAP_LT] = FI_CSWAP_LT, [ATOMIC_CSWAP_GE] = FI_CSWAP_GE, [ATOMIC_CSWAP_GT] = FI_CSWAP_GT,
	[ATOMIC_MSWAP] = FI_MSWAP,
};

static const enum fi_datatype datatypes[ATOMIC_TYPE_MAX] = {
	[ATOMIC_INT8] = FI_INT8,       [ATOMIC_UINT8] = FI_UINT8,   [ATOMIC_INT16] = FI_INT16,
	[ATOMIC_UINT16] = FI_UINT16,   [ATOMIC_INT32] = FI_INT32,   [ATOMIC_UINT32] = FI_UINT32,
	[ATOMIC_INT64] = FI_INT64,     [ATOMIC_UINT64] = FI_UINT64, [ATOMIC_INT128] = FI_INT128,
	[ATOMIC_UINT128] = FI_UINT128, [ATOMIC_FLOAT] = FI_FLOAT,   [ATOMIC_DOUBLE] = FI_DOUBLE,
	[ATOMIC_FLOAT_COMPLEX] = FI_FLOAT_COMPLEX, [ATOMIC_DOUBLE_COMPLEX] = FI_DOUBLE_COMPLEX,
};

/* What a work carries are the low 64 bits of a word; the rest of a longer one is 0. */
static void fill(const struct ofi_session *o, uint8_t *at, uint64_t value, uint64_t bytes) {
	const uint64_t word[2] = { value, 0 };

	for (uint64_t i = 0; i < bytes; i += o->word)
		memcpy(at + i, word, o->word);
}

static int post_plain(struct ofi_session *o, const struct work *w) {
	const struct ofi_place *p = o->places + w->slot;
	size_t count = w->size / o->word;
	struct fi_ioc ioc = { .addr = p->tx, .count = count };
	struct fi_rma_ioc target = { .addr = p->remote, .count = count, .key = o->remote_key };
	struct fi_msg_atomic m = { .msg_iov = &ioc, .desc = &o->desc, .iov_count = 1, .addr = o->peer,
				   .rma_iov = &target, .rma_iov_count = 1, .datatype = o->datatype, .op = o->atomic,
				   .context = o->contexts + w->slot };

	fill(o, p->tx, w->operand, w->size);
	if (w->more)
		return ofi_started(o, "starting an atomic", fi_atomicmsg(o->ep, &m, o->message_flags | FI_MORE));
	return ofi_started(o, "starting an atomic",
			   fi_atomic(o->ep, p->tx, count, o->desc, o->peer, p->remote, o->remote_key, o->datatype,
				     o->atomic, o->contexts + w->slot));
}

static int post_fetch(struct ofi_session *o, const struct work *w) {
	const struct ofi_place *p = o->places + w->slot;
	size_t count = w->size / o->word;
	struct fi_ioc ioc = { .addr = p->tx, .count = count }, result = { .addr = p->rx, .count = count };
	struct fi_rma_ioc target = { .addr = p->remote, .count = count, .key = o->remote_key };
	struct fi_msg_atomic m = { .msg_iov = &ioc, .desc = &o->desc, .iov_count = 1, .addr = o->peer,
				   .rma_iov = &target, .rma_iov_count = 1, .datatype = o->datatype, .op = o->atomic,
				   .context = o->contexts + w->slot };

	fill(o, p->tx, w->operand, w->size);
	if (w->more)
		return ofi_started(o, "starting a fetching atomic",
				   fi_fetch_atomicmsg(o->ep, &m, &result, &o->rx_desc, 1, o->message_flags | FI_MORE));
	return ofi_started(o, "starting a fetching atomic",
			   fi_fetch_atomic(o->ep, p->tx, count, o->desc, p->rx, o->rx_desc, o->peer, p->remote,
					   o->remote_key, o->datatype, o->atomic, o->contexts + w->slot));
}

static int post_compare(struct ofi_session *o, const struct work *w) {
	const struct ofi_place *p = o->places + w->slot;
	size_t count = w->size / o->word;
	struct fi_ioc ioc = { .addr = p->tx, .count = count }, result = { .addr = p->rx, .count = count };
	struct fi_ioc compare = { .addr = p->compare, .count = count };
	struct fi_rma_ioc target = { .addr = p->remote, .count = count, .key = o->remote_key };
	struct fi_msg_atomic m = { .msg_iov = &ioc, .desc = &o->desc, .iov_count = 1, .addr = o->peer,
				   .rma_iov = &target, .rma_iov_count = 1, .datatype = o->datatype, .op = o->atomic,
				   .context = o->contexts + w->slot };

	fill(o, p->tx, w->operand, w->size);
	fill(o, p->compare, w->compare, w->size);
	if (w->more)
		return ofi_started(o, "starting a comparing atomic",
				   fi_compare_atomicmsg(o->ep, &m, &compare, &o->scratch_desc, 1, &result, &o->rx_desc,
							1, o->message_flags | FI_MORE));
	return ofi_started(o, "starting a comparing atomic",
			   fi_compare_atomic(o->ep, p->tx, count, o->desc, p->compare, o->scratch_desc, p->rx,
					     o->rx_desc, o->peer, p->remote, o->remote_key, o->datatype, o->atomic,
					     o->contexts + w->slot));
}

int ofi_atomic_open(struct ofi_session *o) {
	const struct job *job = o->job;
	bool general = op_is_general_atomic(job->op);
	bool compares = job->op == OP_COMPARE_SWAP || job->op == OP_COMPARE_ATOMIC;
	enum atomic_op op = general ? job->atomic_op : compares ? ATOMIC_CSWAP : ATOMIC_SUM;
	size_t count = 0;
	int r;

	o->atomic = operations[op];
	o->datatype = datatypes[job->atomic_type];
	o->word = (uint32_t) atomic_type_bytes(job->atomic_type);
	if (compares) {
		o->post_atomic = post_compare;
		r = fi_compare_atomicvalid(o->ep, o->datatype, o->atomic, &count);
	} else if (job->op == OP_ATOMIC_OP) {
		o->post_atomic = post_plain;
		r = fi_atomicvalid(o->ep, o->datatype, o->atomic, &count);
	} else {
		o->post_atomic = post_fetch;
		r = fi_fetch_atomicvalid(o->ep, o->datatype, o->atomic, &count);
	}
	if (r)
		return failure(-EOPNOTSUPP, EXIT_HOST, "%s: provider %s has no %s (%s on %s) on this host: %s",
			       job->backend, o->session.provider, op_name((int) job->op), atomic_op_names[op],
			       atomic_type_names[job->atomic_type], fi_strerror(-r));
	if (job_largest_size(job) / o->word > count)
		return failure(-EMSGSIZE, EXIT_HOST, "%s: provider %s does at most %zu bytes in one %s; lower --size",
			       job->backend, o->session.provider, count * o->word, op_name((int) job->op));
	return 0;
}
