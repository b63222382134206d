/* SPDX-License-Identifier: Apache-2.0 */
#include "places.h"

#include "base/message.h"

/* Cache lines of half a page. */
enum { FAR_LINES = 32 };

/*
 * 2^32 divided by the golden ratio. Multiples of that part of a power of two, if it is odd, are all numbers below it,
 * and neighbours are far apart (Knuth, The Art of Computer Programming, volume 3, section 6.4).
 */
#define GOLDEN UINT64_C(2654435769)

/*
 * Far ones are an odd number of cache lines apart: at half a page, or pages, most would fall on the same sets
 * of a cache.
 */
void places_scatter(uint64_t bytes, uint64_t message, uint32_t most, struct places *ret) {
	const uint64_t region = bytes / PLACE_LINE_BYTES, each = place_bytes(message) / PLACE_LINE_BYTES;
	uint64_t lines;

	*ret = (struct places) { .n = 1, .region = region * PLACE_LINE_BYTES };
	while (2 * (uint64_t) ret->n <= most && 2 * ret->n * each <= region)
		ret->n *= 2;
	ret->mask = ret->n - 1;
	ret->factor = (uint32_t) (ret->n * GOLDEN >> 32) | 1;
	lines = region / ret->n;
	if (lines >= FAR_LINES && lines % 2 == 0 && lines > each)
		lines--;
	ret->stride = lines * PLACE_LINE_BYTES;
}

int places_suffice(const struct places *p, uint64_t footprint, uint64_t message, uint32_t queues, uint32_t window) {
	if (p->n >= window / queues)
		return 0;
	return failure(-EINVAL, EXIT_USAGE, "--footprint %llu with --verify has %u places of %llu bytes, and "
		       "%u are needed; raise it, or lower --size or --outstanding", (unsigned long long) footprint,
		       p->n * queues, (unsigned long long) message, window);
}
