/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers with units, read whole or refused: no sign, no blank, nothing before or behind. None of these says anything;
 * the caller knows which option the text belongs to. -EINVAL: not of the form; -ERANGE: does not fit.
 */
#pragma once

#include "job.h"

int parse_u64(const char *text, uint64_t *ret);

/* A decimal fraction above zero: no exponent, no infinity, whatever the locale. */
int parse_decimal(const char *text, double *ret);

/* Bytes; K, M, G (or KiB, MiB, GiB) are powers of 1024. */
int parse_size(const char *text, uint64_t *ret);

/*
 * MIN, MIN:MAX (MIN, then doubling up to MAX) or MIN:MAX:STEP (MIN, MIN + STEP, ...),
 * each a size from 1 to JOB_SIZE_MAX. -E2BIG: more than JOB_SIZES_MAX sizes.
 * -EDOM: MAX is below MIN.
 */
int parse_sizes(const char *text, uint64_t ret[JOB_SIZES_MAX], size_t *ret_n);

/* MIN or MIN:MAX (MIN, then doubling up to MAX), each from 1 to JOB_BATCH_MAX. -EDOM: MAX is below MIN. */
int parse_batches(const char *text, uint32_t ret[JOB_BATCHES_MAX], size_t *ret_n);

/* ns, us, ms, s, m, h, with a fraction if wanted; a bare number counts in bare_unit_ns (0: a unit is required). */
int parse_duration(const char *text, uint64_t bare_unit_ns, uint64_t *ret_ns);

/* 1000msg/s, 10Kmsg/s, 5Gb/s: prefixes are decimal, because rates are. The unit is required. */
int parse_rate(const char *text, enum rate_unit *ret_unit, double *ret);

/* Comma-separated, each above 0 and at most 1; ret is scratch on failure. -E2BIG: more than max. */
int parse_quantiles(const char *text, double *ret, size_t max, size_t *ret_n);
