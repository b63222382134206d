/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an atomic operation does to one word, and on which types: libfabric's lists (fi_atomic(3)),
 * kept apart from its headers since a job names them on hosts without libfabric, too.
 */
#pragma once

#include "util.h"

enum atomic_op {
	ATOMIC_NONE,            /* the operation is none of these, or says itself what it does */
	ATOMIC_MIN,
	ATOMIC_MAX,
	ATOMIC_SUM,
	ATOMIC_PROD,
	ATOMIC_LOR,
	ATOMIC_LAND,
	ATOMIC_BOR,
	ATOMIC_BAND,
	ATOMIC_LXOR,
	ATOMIC_BXOR,
	ATOMIC_READ,
	ATOMIC_WRITE,
	ATOMIC_CSWAP,           /* swaps in the operand where compare == target */
	ATOMIC_CSWAP_NE,
	ATOMIC_CSWAP_LE,        /* where compare <= target, and so on */
	ATOMIC_CSWAP_LT,
	ATOMIC_CSWAP_GE,
	ATOMIC_CSWAP_GT,
	ATOMIC_MSWAP,           /* swaps in the bits that compare has set */
	ATOMIC_OP_MAX,
};

enum atomic_type {
	ATOMIC_INT8,
	ATOMIC_UINT8,
	ATOMIC_INT16,
	ATOMIC_UINT16,
	ATOMIC_INT32,
	ATOMIC_UINT32,
	ATOMIC_INT64,
	ATOMIC_UINT64,
	ATOMIC_INT128,
	ATOMIC_UINT128,
	ATOMIC_FLOAT,
	ATOMIC_DOUBLE,
	ATOMIC_FLOAT_COMPLEX,
	ATOMIC_DOUBLE_COMPLEX,
	ATOMIC_TYPE_MAX,
};

enum atomic_kind {
	ATOMIC_PLAIN,           /* answers nothing */
	ATOMIC_FETCH,           /* answers what was there before */
	ATOMIC_COMPARE,         /* the same, with a second operand to compare with */
};

extern const char *const atomic_op_names[ATOMIC_OP_MAX + 1], *const atomic_type_names[ATOMIC_TYPE_MAX + 1];

/* The place of a name; -EINVAL: it is not there ("none" is no name). */
int atomic_op_from_name(const char *name);
int atomic_type_from_name(const char *name);

/* Bytes of one word: 1 to 16. */
uint64_t atomic_type_bytes(enum atomic_type type);

bool atomic_op_is(enum atomic_op op, enum atomic_kind kind);
const char *atomic_kind_words(enum atomic_kind kind);           /* "min, max, ... and write" */
/* fi_atomic(3)'s table: no bits of a float, no order of a complex */
bool atomic_type_has(enum atomic_type type, enum atomic_op op);
bool atomic_is_predictable(enum atomic_type type);              /* atomic_after() knows it */

/* A small number as the low 64 bits of a word of that type; a complex one's real part. */
uint64_t atomic_bits(enum atomic_type type, unsigned number);

/* What a word is after an operation; no bits but those of its own bytes are set. For atomic_is_predictable() types. */
uint64_t atomic_after(enum atomic_type type, enum atomic_op op, uint64_t target, uint64_t operand, uint64_t compare);
