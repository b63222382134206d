/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fixed-memory log-linear histogram in HdrHistogram's layout: 3 significant digits from 1 ns to an hour. An hour of
 * samples costs the memory of a second, and two histograms add up to one.
 *
 * Beside the counts stand the exact minimum, maximum, sum and sum of squares, so that mean and deviation carry no
 * rounding. Values are nanoseconds as observed (round trips; halved only at output).
 */
#pragma once

#include "base/util.h"

enum {
	HISTOGRAM_DIGITS = 3,
	HISTOGRAM_SUB_BUCKET_BITS = 11,  /* 2048 steps: the first power of two that resolves 2 * 10^3 */
	HISTOGRAM_SUB_BUCKETS = 1 << HISTOGRAM_SUB_BUCKET_BITS,
	HISTOGRAM_HALF = HISTOGRAM_SUB_BUCKETS / 2,
	HISTOGRAM_BUCKETS = 32,          /* 2048 << 31 ns is 73 min: the first that reaches an hour */
	HISTOGRAM_COUNTS = (HISTOGRAM_BUCKETS + 1) * HISTOGRAM_HALF,
};

enum { HISTOGRAM_TEXT_MAX = 512 * 1024 }; /* bytes of any encoding; a text that is longer is none */

#define HISTOGRAM_HIGHEST (UINT64_C(3600) * NSEC_PER_SEC)

struct histogram {
	uint64_t count;
	uint64_t min, max;               /* exact; min is UINT64_MAX while empty */
	unsigned __int128 sum, sum_squares;
	uint64_t counts[HISTOGRAM_COUNTS];
};

int histogram_new(struct histogram **ret);
struct histogram *histogram_free(struct histogram *h);
void histogram_freep(struct histogram **h);
void histogram_reset(struct histogram *h);

/* Where a value is counted. Values above an hour are counted in the last place; max stays exact. */
static inline size_t histogram_index(uint64_t value) {
	unsigned bucket;

	if (unlikely(value > HISTOGRAM_HIGHEST))
		value = HISTOGRAM_HIGHEST;
	bucket = (unsigned) (63 - HISTOGRAM_SUB_BUCKET_BITS + 1 -
			     __builtin_clzll(value | (HISTOGRAM_SUB_BUCKETS - 1)));
	/* bucket b holds 1024 steps of 2^b; the first 1024 steps of bucket 0 come before them */
	return ((size_t) bucket << (HISTOGRAM_SUB_BUCKET_BITS - 1)) + (size_t) (value >> bucket);
}

static inline void histogram_record(struct histogram *h, uint64_t value) {
	h->counts[histogram_index(value)]++;
	h->count++;
	h->sum += value;
	h->sum_squares += (unsigned __int128) value * value;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

void histogram_add(struct histogram *to, const struct histogram *from);

double histogram_mean(const struct histogram *h);
double histogram_stddev(const struct histogram *h);   /* of the sample: divides by count - 1; 0 below two samples */

/*
 * The highest value equivalent to the p-quantile (0 < p <= 1), as HdrHistogram reports it,
 * never above the exact maximum. 0 when empty.
 */
uint64_t histogram_quantile(const struct histogram *h, double p);

/* True where count * (1 - p) >= 10: fewer samples above a percentile than ten say nothing about it (definitions.md). */
bool histogram_supports(const struct histogram *h, double p);

/* Lowest and highest value that are counted at an index. */
uint64_t histogram_lowest_at(size_t index);
uint64_t histogram_highest_at(size_t index);

/*
 * HdrHistogram's V2 encoding, deflated, in base64 (the text that starts with "HISTFAAA").
 * The encoding carries counts only: decoding sets min, max, sum and sum of squares from the counts,
 * as every HdrHistogram reader does. -EBADMSG: not such a text, or one of another layout; -ENOMEM.
 */
int histogram_encode(const struct histogram *h, char **ret);
int histogram_decode(const char *text, struct histogram **ret);

/* The same, added to what `to` holds, which is of no use where this fails. A small one costs no more than its text. */
int histogram_decode_add(const char *text, struct histogram *to);
