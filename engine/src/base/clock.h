/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of the hot loop. Two kinds: CLOCK_MONOTONIC through the vDSO, and the time stamp counter, which is read in
 * less than half the time but is only a clock where it neither stops nor changes its rate (constant_tsc, nonstop_tsc).
 *
 * Readings are ticks; differences are turned into nanoseconds with one multiplication and a shift.
 */
#pragma once

#include <time.h>

#include "util.h"

enum clock_kind {
	CLOCK_KIND_MONOTONIC,
	CLOCK_KIND_CYCLES,
	CLOCK_KIND_MAX,
};

struct clock {
	bool cycles;
	uint32_t multiplier;    /* nanoseconds = ticks * multiplier >> CLOCK_SHIFT */
	double ns_per_tick;
};

enum { CLOCK_SHIFT = 24 }; /* 24 bits keep a rate of 0.2 to 10 GHz exact to 1e-6 within 32 bits */

/*
 * Prepares a clock. -EOPNOTSUPP (said) where the counter is no clock on this machine: it may stop or change its rate,
 * or it did so while it was calibrated. `ignore_mismatch`: says so and takes it all the same.
 */
int clock_open(enum clock_kind kind, bool ignore_mismatch, struct clock *ret);

/*
 * Whether rates (nanoseconds a tick) that were measured one after the other are one;
 * *ret_spread: the largest difference, as a part.
 */
bool clock_rates_agree(const double *rates, size_t n, double *ret_spread);

static inline uint64_t monotonic_ns(void) {
	struct timespec t;

	(void) clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

/* The time on the wall at a moment of the monotonic clock, as the two stand to each other now. */
struct timespec clock_wall_at(uint64_t monotonic);

static inline uint64_t clock_ticks(const struct clock *c) {
#if defined(__x86_64__)
	if (c->cycles)
		/* <x86intrin.h> has it, too, behind 45,000 lines that every file would read */
		return __builtin_ia32_rdtsc();
#endif
	return monotonic_ns();
}

static inline uint64_t clock_ns(const struct clock *c, uint64_t ticks) {
	if (!c->cycles)
		return ticks;
	return (uint64_t) (((unsigned __int128) ticks * c->multiplier) >> CLOCK_SHIFT);
}

/* The inverse, for deadlines and gaps, which are computed outside the hot loop. */
static inline uint64_t clock_ticks_of(const struct clock *c, uint64_t ns) {
	return c->cycles ? (uint64_t) ((double) ns / c->ns_per_tick) : ns;
}
