/* SPDX-License-Identifier: Apache-2.0 */
/* What the process that measures for a soak says to its keeper: a line of JSON each, to standard output. */
#pragma once

#include "result.h"

/* What the keeper tells the process that measures. */
struct soak {
	bool begins;                    /* its time does when the first connection is warm: epoch_ns is not known yet */
	/* when the soak began, monotonic; before the host's own start if it was started anew since */
	int64_t epoch_ns;
	unsigned connection;            /* number of this one, from 1 */
};

/* Seconds since the soak began. */
static inline double soak_seconds(const struct soak *s, uint64_t monotonic) {
	return (double) ((int64_t) monotonic - s->epoch_ns) / 1e9;
}

void soak_say_connection(const struct soak *s, const struct result *r);
void soak_say_stall(const struct soak *s, const struct stall *stall);
void soak_say_interval(const struct soak *s, const struct result *r);
/* the connection; not kept, but the gap has its words */
void soak_say_lost(const char *why, int code);
/* the time is over, or somebody has asked to stop */
void soak_say_over(void);
