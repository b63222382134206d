/* SPDX-License-Identifier: Apache-2.0 */
#include "atomic_word.h"

const char *const atomic_op_names[ATOMIC_OP_MAX + 1] = {
	[ATOMIC_NONE] = "none",         [ATOMIC_MIN] = "min",           [ATOMIC_MAX] = "max",
	[ATOMIC_SUM] = "sum",           [ATOMIC_PROD] = "prod",         [ATOMIC_LOR] = "lor",
	[ATOMIC_LAND] = "land",         [ATOMIC_BOR] = "bor",           [ATOMIC_BAND] = "band",
	[ATOMIC_LXOR] = "lxor",         [ATOMIC_BXOR] = "bxor",         [ATOMIC_READ] = "read",
	[ATOMIC_WRITE] = "write",       [ATOMIC_CSWAP] = "cswap",       [ATOMIC_CSWAP_NE] = "cswap-ne",
	[ATOMIC_CSWAP_LE] = "cswap-le", [ATOMIC_CSWAP_LT] = "cswap-lt", [ATOMIC_CSWAP_GE] = "cswap-ge",
	[ATOMIC_CSWAP_GT] = "cswap-gt", [ATOMIC_MSWAP] = "mswap",
};

const char *const atomic_type_names[ATOMIC_TYPE_MAX + 1] = {
	[ATOMIC_INT8] = "int8",     [ATOMIC_UINT8] = "uint8",   [ATOMIC_INT16] = "int16",   [ATOMIC_UINT16] = "uint16",
	[ATOMIC_INT32] = "int32",   [ATOMIC_UINT32] = "uint32", [ATOMIC_INT64] = "int64",   [ATOMIC_UINT64] = "uint64",
	[ATOMIC_INT128] = "int128", [ATOMIC_UINT128] = "uint128", [ATOMIC_FLOAT] = "float", [ATOMIC_DOUBLE] = "double",
	[ATOMIC_FLOAT_COMPLEX] = "float-complex", [ATOMIC_DOUBLE_COMPLEX] = "double-complex",
};

static const uint8_t type_bytes[ATOMIC_TYPE_MAX] = {
	[ATOMIC_INT8] = 1,     [ATOMIC_UINT8] = 1,           [ATOMIC_INT16] = 2,         [ATOMIC_UINT16] = 2,
	[ATOMIC_INT32] = 4,    [ATOMIC_UINT32] = 4,          [ATOMIC_INT64] = 8,         [ATOMIC_UINT64] = 8,
	[ATOMIC_FLOAT] = 4,    [ATOMIC_DOUBLE] = 8,          [ATOMIC_FLOAT_COMPLEX] = 8, [ATOMIC_INT128] = 16,
	[ATOMIC_UINT128] = 16, [ATOMIC_DOUBLE_COMPLEX] = 16,
};

uint64_t atomic_type_bytes(enum atomic_type type) {
	return type_bytes[type];
}

static int find(const char *const *names, int first, int max, const char *name) {
	for (int i = first; i < max; i++)
		if (streq(names[i], name))
			return i;
	return -EINVAL;
}

int atomic_op_from_name(const char *name) {
	return find(atomic_op_names, ATOMIC_NONE + 1, ATOMIC_OP_MAX, name);
}

int atomic_type_from_name(const char *name) {
	return find(atomic_type_names, 0, ATOMIC_TYPE_MAX, name);
}

bool atomic_op_is(enum atomic_op op, enum atomic_kind kind) {
	switch (kind) {
	case ATOMIC_PLAIN:
		return op > ATOMIC_NONE && op < ATOMIC_CSWAP && op != ATOMIC_READ;
	case ATOMIC_FETCH:
		return op > ATOMIC_NONE && op < ATOMIC_CSWAP;
	default:
		return op >= ATOMIC_CSWAP;
	}
}

const char *atomic_kind_words(enum atomic_kind kind) {
	switch (kind) {
	case ATOMIC_PLAIN:
		return "min, max, sum, prod, lor, land, bor, band, lxor, bxor and write";
	case ATOMIC_FETCH:
		return "min, max, sum, prod, lor, land, bor, band, lxor, bxor, read and write";
	default:
		return "cswap, cswap-ne, cswap-le, cswap-lt, cswap-ge, cswap-gt and mswap";
	}
}

static bool is_float(enum atomic_type type) {
	return type == ATOMIC_FLOAT || type == ATOMIC_DOUBLE;
}

static bool is_complex(enum atomic_type type) {
	return type == ATOMIC_FLOAT_COMPLEX || type == ATOMIC_DOUBLE_COMPLEX;
}

bool atomic_type_has(enum atomic_type type, enum atomic_op op) {
	switch (op) {
	case ATOMIC_BOR:
	case ATOMIC_BAND:
	case ATOMIC_BXOR:
	case ATOMIC_MSWAP:
		return !is_float(type) && !is_complex(type);
	case ATOMIC_MIN:
	case ATOMIC_MAX:
	case ATOMIC_CSWAP_LE:
	case ATOMIC_CSWAP_LT:
	case ATOMIC_CSWAP_GE:
	case ATOMIC_CSWAP_GT:
		return !is_complex(type);
	default:
		return true;
	}
}

bool atomic_is_predictable(enum atomic_type type) {
	return !is_complex(type) && type_bytes[type] <= sizeof(uint64_t);
}

/* A value that all of them fit into: wide enough for every sum and product of two words before it is cut again. */
union value {
	__int128 i;
	double d;
};

static uint64_t cut(enum atomic_type type, uint64_t bits) {
	unsigned n = 8u * type_bytes[type]; /* 128 for the longest */

	return n < 64 ? bits & ((UINT64_C(1) << n) - 1) : bits;
}

static bool is_signed(enum atomic_type type) {
	return type == ATOMIC_INT8 || type == ATOMIC_INT16 || type == ATOMIC_INT32 || type == ATOMIC_INT64;
}

static union value load(enum atomic_type type, uint64_t bits) {
	uint32_t low = (uint32_t) bits;
	unsigned unused = 64u - 8u * type_bytes[type];
	union value v;
	float f;

	if (type == ATOMIC_FLOAT) {
		memcpy(&f, &low, sizeof(f));
		v.d = (double) f;
	} else if (type == ATOMIC_DOUBLE)
		memcpy(&v.d, &bits, sizeof(v.d));
	else if (is_signed(type))
		v.i = (int64_t) (bits << unused) >> unused; /* gcc and clang: arithmetic */
	else
		v.i = bits;
	return v;
}

static uint64_t store(enum atomic_type type, union value v) {
	uint64_t bits = 0;
	uint32_t low;
	float f;

	if (type == ATOMIC_FLOAT) {
		f = (float) v.d;
		memcpy(&low, &f, sizeof(low));
		return low;
	}
	if (type == ATOMIC_DOUBLE) {
		memcpy(&bits, &v.d, sizeof(bits));
		return bits;
	}
	return cut(type, (uint64_t) (unsigned __int128) v.i);
}

uint64_t atomic_bits(enum atomic_type type, unsigned number) {
	union value v;

	if (is_complex(type)) /* the real part comes first (C11, 6.2.5) */
		type = type == ATOMIC_FLOAT_COMPLEX ? ATOMIC_FLOAT : ATOMIC_DOUBLE;
	if (is_float(type))
		v.d = number;
	else
		v.i = number;
	return store(type, v);
}

/* -1, 0, 1: how a stands to b. No NaN ever comes here: all values grow from small whole numbers. */
static int order(enum atomic_type type, union value a, union value b) {
	return is_float(type) ? (a.d > b.d) - (a.d < b.d) : (a.i > b.i) - (a.i < b.i);
}

static bool is_true(enum atomic_type type, union value v) {
	return is_float(type) ? v.d != 0 : v.i != 0;
}

static uint64_t calculate(enum atomic_type type, enum atomic_op op, union value a, union value b) {
	union value v;

	if (is_float(type))
		v.d = op == ATOMIC_SUM ? a.d + b.d : a.d * b.d;
	else /* unsigned: a product of two 64-bit words may overflow, and is cut anyway */
		v.i = (__int128) (op == ATOMIC_SUM ? (unsigned __int128) a.i + (unsigned __int128) b.i
						   : (unsigned __int128) a.i * (unsigned __int128) b.i);
	return store(type, v);
}

uint64_t atomic_after(enum atomic_type type, enum atomic_op op, uint64_t target, uint64_t operand, uint64_t compare) {
	union value t = load(type, target), o = load(type, operand);
	int by = order(type, load(type, compare), t);

	switch (op) {
	case ATOMIC_MIN:
		return order(type, o, t) < 0 ? operand : target;
	case ATOMIC_MAX:
		return order(type, o, t) > 0 ? operand : target;
	case ATOMIC_SUM:
	case ATOMIC_PROD:
		return calculate(type, op, t, o);
	case ATOMIC_LOR:
		return atomic_bits(type, is_true(type, t) || is_true(type, o));
	case ATOMIC_LAND:
		return atomic_bits(type, is_true(type, t) && is_true(type, o));
	case ATOMIC_LXOR:
		return atomic_bits(type, is_true(type, t) != is_true(type, o));
	case ATOMIC_BOR:
		return target | operand;
	case ATOMIC_BAND:
		return target & operand;
	case ATOMIC_BXOR:
		return target ^ operand;
	case ATOMIC_WRITE:
		return operand;
	case ATOMIC_CSWAP:
		return by == 0 ? operand : target;
	case ATOMIC_CSWAP_NE:
		return by != 0 ? operand : target;
	case ATOMIC_CSWAP_LE:
		return by <= 0 ? operand : target;
	case ATOMIC_CSWAP_LT:
		return by < 0 ? operand : target;
	case ATOMIC_CSWAP_GE:
		return by >= 0 ? operand : target;
	case ATOMIC_CSWAP_GT:
		return by > 0 ? operand : target;
	case ATOMIC_MSWAP:
		return (operand & compare) | (target & ~compare);
	default: /* ATOMIC_READ */
		return target;
	}
}
