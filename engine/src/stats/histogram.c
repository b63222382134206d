/* SPDX-License-Identifier: Apache-2.0 */
#include "histogram.h"

#include <math.h>

int histogram_new(struct histogram **ret) {
	struct histogram *h = malloc(sizeof(*h));

	if (!h)
		return -ENOMEM;
	histogram_reset(h); /* also touches every page, before anybody measures */
	*ret = h;
	return 0;
}

struct histogram *histogram_free(struct histogram *h) {
	free(h);
	return NULL;
}

void histogram_freep(struct histogram **h) {
	*h = histogram_free(*h);
}

void histogram_reset(struct histogram *h) {
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void histogram_add(struct histogram *to, const struct histogram *from) {
	for (size_t i = 0; i < HISTOGRAM_COUNTS; i++)
		to->counts[i] += from->counts[i];
	to->count += from->count;
	to->min = MIN(to->min, from->min);
	to->max = MAX(to->max, from->max);
	to->sum += from->sum;
	to->sum_squares += from->sum_squares;
}

double histogram_mean(const struct histogram *h) {
	return h->count ? (double) ((long double) h->sum / (long double) h->count) : 0;
}

double histogram_stddev(const struct histogram *h) {
	unsigned __int128 n = h->count, shift, squares;
	long double rest, variance;

	if (h->count < 2)
		return 0;
	/*
	 * Squares of nanoseconds around a mean a thousand deviations away would cancel each other in floating point.
	 * Moved by the whole part of the mean, which integers do exactly (intermediate results may wrap), they do not.
	 */
	shift = h->sum / n;
	squares = h->sum_squares - 2 * shift * h->sum + n * shift * shift;
	rest = (long double) (h->sum - n * shift);
	variance = ((long double) squares - rest * rest / (long double) n) / (long double) (n - 1);
	return variance > 0 ? (double) sqrtl(variance) : 0;
}

uint64_t histogram_quantile(const struct histogram *h, double p) {
	uint64_t wanted, seen = 0;
	size_t i;

	if (h->count == 0)
		return 0;
	/*
	 * HdrHistogram's own arithmetic (getValueAtPercentile): in percent,
	 * rounded to the nearest sample, at least the first
	 */
	wanted = (uint64_t) (MIN(p * 100, 100.0) * (double) h->count / 100 + 0.5);
	wanted = MIN(MAX(wanted, UINT64_C(1)), h->count);
	for (i = 0; i < HISTOGRAM_COUNTS - 1; i++) {
		seen += h->counts[i];
		if (seen >= wanted)
			break;
	}
	return MIN(histogram_highest_at(i), h->max);
}

bool histogram_supports(const struct histogram *h, double p) {
	/* 100000 * (1 - 0.9999) is 9.99999999999 in binary; a millionth of a sample is none */
	return (double) h->count * (1 - p) >= 10 - 1e-6;
}

/* Bucket 0 has two halves of 1024 steps of 1; each later bucket b has 1024 steps of 2^b. */
static unsigned bucket_at(size_t index) {
	return index < HISTOGRAM_SUB_BUCKETS ? 0 : (unsigned) (index >> (HISTOGRAM_SUB_BUCKET_BITS - 1)) - 1;
}

uint64_t histogram_lowest_at(size_t index) {
	unsigned bucket = bucket_at(index);

	return (uint64_t) (index - ((size_t) bucket << (HISTOGRAM_SUB_BUCKET_BITS - 1))) << bucket;
}

uint64_t histogram_highest_at(size_t index) {
	return histogram_lowest_at(index) + (UINT64_C(1) << bucket_at(index)) - 1;
}
