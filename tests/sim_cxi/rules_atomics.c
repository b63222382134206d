/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about atomics. */
#include "rules.h"

#include <complex.h>

static const struct wish plain = { 0 };
static const size_t sizes[] = { 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, sizeof(long double), sizeof(long double complex) };

enum kind { PLAIN, FETCHING, COMPARING };

/* Written down from the words of the real one's table, not from the simulation's bits. */
static bool expected(enum kind kind, enum fi_op op, enum fi_datatype type) {
	/* Cassini has double complex too: the inner provider has not (README.md) */
	bool integer = type <= FI_UINT64, real = type <= FI_DOUBLE, any = type <= FI_FLOAT_COMPLEX;

	switch (op) {
	case FI_MIN:
	case FI_MAX:
		return kind != COMPARING && real;
	case FI_SUM:
	case FI_ATOMIC_WRITE:
		return kind != COMPARING && any;
	case FI_LOR:
	case FI_LAND:
	case FI_LXOR:
	case FI_BOR:
	case FI_BAND:
	case FI_BXOR:
		return kind != COMPARING && integer;
	case FI_ATOMIC_READ:
		return kind == FETCHING && any;
	case FI_CSWAP:
	case FI_CSWAP_NE:
		return kind == COMPARING && any;
	case FI_CSWAP_LE:
	case FI_CSWAP_LT:
	case FI_CSWAP_GE:
	case FI_CSWAP_GT:
		return kind == COMPARING && real;
	case FI_MSWAP:
		return kind == COMPARING && integer;
	default:
		return false;
	}
}

static ssize_t post(struct end *a, enum kind kind, enum fi_op op, enum fi_datatype type, uint64_t offset,
		    size_t count) {
	uint8_t *operand = a->area + 1024, *compare = operand + 64, *result = operand + 128;

	if (kind == PLAIN)
		return fi_atomic(a->ep, operand, count, NULL, a->peer, offset, 1, type, op, NULL);
	if (kind == FETCHING)
		return fi_fetch_atomic(a->ep, operand, count, NULL, result, NULL, a->peer, offset, 1, type, op, NULL);
	return fi_compare_atomic(a->ep, operand, count, NULL, compare, NULL, result, NULL, a->peer, offset, 1, type, op,
				 NULL);
}

static int valid(struct end *a, enum kind kind, enum fi_op op, enum fi_datatype type, size_t *count) {
	if (kind == PLAIN)
		return fi_atomicvalid(a->ep, type, op, count);
	return kind == FETCHING ? fi_fetch_atomicvalid(a->ep, type, op, count)
				: fi_compare_atomicvalid(a->ep, type, op, count);
}

/* Every combination: the two questions and the operation itself answer alike. */
static void table(void) {
	static const uint64_t flags[] = { 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC };
	struct fi_atomic_attr attr;
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	for (enum kind kind = PLAIN; kind <= COMPARING; kind++)
		for (enum fi_op op = 0; op < FI_ATOMIC_OP_LAST; op++)
			for (enum fi_datatype type = 0; type < FI_DATATYPE_LAST; type++) {
				int answer = expected(kind, op, type) ? 0 : -FI_EOPNOTSUPP;
				size_t count = 99;

				SAME(valid(&a, kind, op, type, &count), answer);
				SAME(fi_query_atomic(a.domain, type, op, &attr, flags[kind]), answer);
				SAME(post(&a, kind, op, type, 0, 1), answer);
				if (answer)
					continue;
				SAME(count, 1);
				SAME(attr.size, sizes[type]);
				SAME(done(&a, &b), 0);
			}
	close_pair(&a, &b);
}

static void results(void) {
	uint64_t *target, *operand, *compare, *result;
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	target = (uint64_t *) (void *) (b.area + 64);
	operand = (uint64_t *) (void *) (a.area + 1024);
	compare = operand + 8;
	result = operand + 16;
	*target = 40;
	*operand = 2;
	SAME(post(&a, FETCHING, FI_SUM, FI_UINT64, 64, 1), 0);
	SAME(done(&a, &b), 0);
	SAME(*result, 40);
	SAME(*target, 42);
	*operand = 7;
	*compare = 41;
	SAME(post(&a, COMPARING, FI_CSWAP, FI_UINT64, 64, 1), 0);
	SAME(done(&a, &b), 0);
	SAME(*result, 42);
	SAME(*target, 42);
	*compare = 42;
	SAME(post(&a, COMPARING, FI_CSWAP, FI_UINT64, 64, 1), 0);
	SAME(done(&a, &b), 0);
	SAME(*target, 7);
	SAME(post(&a, FETCHING, FI_ATOMIC_READ, FI_UINT64, 64, 1), 0);
	SAME(done(&a, &b), 0);
	SAME(*result, 7);
	*operand = 1;
	SAME(fi_inject_atomic(a.ep, operand, 1, a.peer, 64, 1, FI_UINT64, FI_SUM), 0);
	*operand = 100;
	SAME(post(&a, FETCHING, FI_ATOMIC_READ, FI_UINT64, 64, 1), 0);
	SAME(done(&a, &b), 0);
	SAME(*result, 8);
	close_pair(&a, &b);
}

static ssize_t flagged(struct end *a, enum kind kind, uint64_t key, uint64_t flags) {
	struct fi_ioc operand = { .addr = a->area, .count = 1 }, result = { .addr = a->area + 8, .count = 1 };
	struct fi_rma_ioc rma = { .addr = 0, .count = 1, .key = key };
	struct fi_msg_atomic m = {
		.msg_iov = &operand, .iov_count = 1, .addr = a->peer, .rma_iov = &rma, .rma_iov_count = 1,
		.datatype = FI_UINT64, .op = FI_SUM,
	};

	return kind == PLAIN ? fi_atomicmsg(a->ep, &m, flags) : fi_fetch_atomicmsg(a->ep, &m, &result, NULL, 1, flags);
}

static void limits(void) {
	struct fi_cq_err_entry error;
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	SAME(post(&a, PLAIN, FI_SUM, FI_UINT64, 0, 2), -FI_EINVAL);
	SAME(post(&a, FETCHING, FI_SUM, FI_UINT64, 0, 2), -FI_EINVAL);
	SAME(post(&a, PLAIN, FI_SUM, FI_UINT64, 4, 1), 0);
	SAME(completion(&a, &b, NULL, &error), FI_EIO);
	CHECK(strcmp(fi_cq_strerror(a.cq, error.prov_errno, NULL, NULL, 0), "AMO_ALIGN_ERROR") == 0);
	SAME(post(&a, PLAIN, FI_SUM, FI_UINT64, AREA - 4, 1), 0);
	SAME(done(&a, &b), FI_EIO);
	SAME(post(&a, PLAIN, FI_SUM, FI_UINT32, 4, 1), 0);
	SAME(done(&a, &b), 0);
	close_pair(&a, &b);
}

static void flags(void) {
	struct fid_mr *optimized;
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	optimized = b.mr;
	region(&b, 100, FI_REMOTE_WRITE | FI_REMOTE_READ, 0);
	SAME(flagged(&a, FETCHING, 1, FI_DELIVERY_COMPLETE), -FI_EINVAL);       /* erratum */
	SAME(flagged(&a, FETCHING, 1, FI_CXI_UNRELIABLE), -FI_EINVAL);
	SAME(flagged(&a, PLAIN, 1, FI_CXI_HRP), -FI_EINVAL);                    /* only with FI_CXI_UNRELIABLE */
	SAME(flagged(&a, PLAIN, 100, FI_CXI_UNRELIABLE), -FI_EINVAL);           /* only on optimized regions */
	SAME(flagged(&a, PLAIN, 1, FI_MULTI_RECV), -FI_EBADFLAGS);
	SAME(flagged(&a, PLAIN, 1, FI_CXI_HRP | FI_CXI_UNRELIABLE), 0);
	SAME(done(&a, &b), 0);
	SAME(flagged(&a, FETCHING, 1, 0), 0);
	SAME(done(&a, &b), 0);
	SAME(fi_close(&optimized->fid), 0);
	close_pair(&a, &b);
}

static void not_asked_for(void) {
	const struct wish w = { .caps = FI_MSG | FI_RMA };
	struct end a, b;

	open_pair(&a, &b, &w, 1);
	SAME(post(&a, PLAIN, FI_SUM, FI_UINT64, 0, 1), -FI_ENOSYS);
	close_pair(&a, &b);
}

static void immediate(void) {
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	SAME(post(&a, PLAIN, FI_SUM, FI_UINT64, 0, 1), 0);
	SAME(done(&a, &b), 0);
	close_pair(&a, &b);
	CHECK(reported("\"modelled\":{\"dma_amo\":1}"));
}

const struct rule rules_atomics[] = {
	{ "atomics: the operations and types of Cassini and no others, asked and done", table, { 0 } },
	{ "atomics: results, and injected ones", results, { 0 } },
	{ "atomics: one element, aligned, inside the region", limits, { 0 } },
	{ "atomics: unreliable, high-rate and delivery-complete ones only where they exist", flags, { 0 } },
	{ "atomics: only where FI_ATOMIC was asked for", not_asked_for, { 0 } },
	{ "atomics: FI_CXI_DISABLE_NON_INJECT_AMO_IDC", immediate, { REPORT, "FI_CXI_DISABLE_NON_INJECT_AMO_IDC=1" } },
	{ NULL, NULL, { 0 } },
};
