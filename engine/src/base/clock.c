/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <stdio.h>

#include "message.h"

/*
 * 20 ms between two pairs of readings that are each closer than a microsecond bound the error of a rate at 1e-4;
 * in practice it is 5e-6.
 */
#define CALIBRATION_NS (20 * NSEC_PER_MSEC)
enum { CALIBRATION_ROUNDS = 3, PAIR_TRIES = 16 };

/* Ten times that error, and far below what a governor changes: its smallest step is 100 MHz of some GHz. */
#define CALIBRATION_SPREAD 1e-3

/*
 * Linux names both properties in /proc/cpuinfo;
 * without either the counter may stop in idle states or follow the frequency.
 */
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

bool clock_rates_agree(const double *rates, size_t n, double *ret_spread) {
	double lowest = rates[0], highest = rates[0];

	for (size_t i = 1; i < n; i++) {
		lowest = MIN(lowest, rates[i]);
		highest = MAX(highest, rates[i]);
	}
	*ret_spread = highest / lowest - 1;
	return *ret_spread <= CALIBRATION_SPREAD;
}

#if defined(__x86_64__)
struct pair {
	uint64_t ns, ticks;
};

/* Both clocks at one moment: of several tries the one that was interrupted least. */
static struct pair read_pair(void) {
	struct pair best = { 0 };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < PAIR_TRIES; i++) {
		uint64_t before = __builtin_ia32_rdtsc(), ns = monotonic_ns(), after = __builtin_ia32_rdtsc();

		if (after - before < shortest) {
			shortest = after - before;
			best = (struct pair) { .ns = ns, .ticks = before + shortest / 2 };
		}
	}
	return best;
}

/* Nanoseconds a tick, over all rounds; *ret_spread as clock_rates_agree() sees them. */
static double calibrate(bool *ret_agree, double *ret_spread) {
	struct pair first = read_pair(), last = first;
	double rates[CALIBRATION_ROUNDS];

	for (int i = 0; i < CALIBRATION_ROUNDS; i++) {
		struct pair now = last;

		while (now.ns - last.ns < CALIBRATION_NS)
			now = read_pair();
		rates[i] = (double) (now.ns - last.ns) / (double) (now.ticks - last.ticks);
		last = now;
	}
	*ret_agree = clock_rates_agree(rates, CALIBRATION_ROUNDS, ret_spread);
	return (double) (last.ns - first.ns) / (double) (last.ticks - first.ticks);
}

static int open_cycles(bool ignore_mismatch, struct clock *ret) {
	bool invariant = false, agree;
	double ns_per_tick, spread;

	(void) counter_is_invariant(&invariant);
	if (!invariant && !ignore_mismatch)
		return failure(-EOPNOTSUPP, EXIT_HOST,
			       "--clock cycles: this machine's time stamp counter is not constant and nonstop "
			       "(/proc/cpuinfo has no constant_tsc and nonstop_tsc); "
			       "use --clock monotonic, or --ignore-frequency-mismatch");
	ns_per_tick = calibrate(&agree, &spread);
	if (!agree && !ignore_mismatch)
		return failure(-EOPNOTSUPP, EXIT_HOST,
			       "--clock cycles: the rate of the time stamp counter changed by %.2f %% against "
			       "CLOCK_MONOTONIC within %d ms; use --clock monotonic, or --ignore-frequency-mismatch",
			       spread * 100, (int) (CALIBRATION_ROUNDS * CALIBRATION_NS / NSEC_PER_MSEC));
	if (!invariant || !agree)
		notice("--clock cycles: the time stamp counter %s; it is used as --ignore-frequency-mismatch asks for, "
		       "and the figures may be wrong", invariant ? "changes its rate" : "may stop or change its rate");
	*ret = (struct clock) {
		.cycles = true,
		.multiplier = (uint32_t) (ns_per_tick * (1 << CLOCK_SHIFT) + 0.5),
		.ns_per_tick = ns_per_tick,
	};
	return 0;
}
#else
static int open_cycles(bool ignore_mismatch, struct clock *ret) {
	(void) ignore_mismatch;
	(void) ret;
	return failure(-EOPNOTSUPP, EXIT_HOST, "--clock cycles: only x86-64 processors have it; use --clock monotonic");
}
#endif

int clock_open(enum clock_kind kind, bool ignore_mismatch, struct clock *ret) {
	if (kind == CLOCK_KIND_CYCLES)
		return open_cycles(ignore_mismatch, ret);
	*ret = (struct clock) { .ns_per_tick = 1 };
	return 0;
}

struct timespec clock_wall_at(uint64_t monotonic) {
	const int64_t second = (int64_t) NSEC_PER_SEC;
	struct timespec t;
	int64_t ns;

	(void) clock_gettime(CLOCK_REALTIME, &t);
	ns = (int64_t) t.tv_sec * second + t.tv_nsec - (int64_t) (monotonic_ns() - monotonic);
	return (struct timespec) { .tv_sec = (time_t) (ns / second), .tv_nsec = (long) (ns % second) };
}
