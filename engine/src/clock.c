/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <stdio.h>

#include "message.h"

/* 20 ms against a clock read in under 50 ns bounds the calibration's error at 5e-6; best of 3 against interruptions. */
#define CALIBRATION_NS (20 * NSEC_PER_MSEC)
enum { CALIBRATION_ROUNDS = 3 };

/* Linux names both properties in /proc/cpuinfo; without either the counter may stop in idle states or follow the frequency. */
static int counter_is_invariant(bool *ret) {
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	FILE *f;
	bool found = false;

	f = fopen("/proc/cpuinfo", "re");
	if (!f)
		return -errno;
	while (getline(&line, &size, f) > 0)
		if (strncmp(line, "flags", 5) == 0) {
			found = strstr(line, " constant_tsc") && strstr(line, " nonstop_tsc");
			break;
		}
	(void) fclose(f);
	*ret = found;
	return 0;
}

#if defined(__x86_64__)
static double calibrate(void) {
	double best = 0;
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < CALIBRATION_ROUNDS; i++) {
		uint64_t n0 = monotonic_ns(), t0 = __rdtsc(), n1, t1;

		do {
			n1 = monotonic_ns();
			t1 = __rdtsc();
		} while (n1 - n0 < CALIBRATION_NS);
		/* The round that overshot least was interrupted least. */
		if (n1 - n0 < shortest) {
			shortest = n1 - n0;
			best = (double) (n1 - n0) / (double) (t1 - t0);
		}
	}
	return best;
}
#endif

int clock_open(enum clock_kind kind, struct clock *ret) {
	bool invariant = false;

	if (kind == CLOCK_KIND_MONOTONIC) {
		*ret = (struct clock) { .ns_per_tick = 1 };
		return 0;
	}
	(void) counter_is_invariant(&invariant);
	if (!invariant)
		return failure(-EOPNOTSUPP, EXIT_HOST,
			       "--clock cycles: this machine's time stamp counter is not constant and nonstop "
			       "(/proc/cpuinfo has no constant_tsc and nonstop_tsc), so cycles are no clock here; "
			       "use --clock monotonic");
#if defined(__x86_64__)
	double ns_per_tick = calibrate();

	*ret = (struct clock) {
		.cycles = true,
		.multiplier = (uint32_t) (ns_per_tick * (1 << CLOCK_SHIFT) + 0.5),
		.ns_per_tick = ns_per_tick,
	};
	return 0;
#else
	return failure(-EOPNOTSUPP, EXIT_HOST, "--clock cycles: only x86-64 processors have it; use --clock monotonic");
#endif
}
