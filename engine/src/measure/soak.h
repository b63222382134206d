/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A soak: lat or bw for hours, whatever happens to the connection. Two processes share it (docs/soak.md): a keeper,
 * which never touches a fabric library, keeps FILE and the time; the other measures, over one connection,
 * says a line of JSON for each interval into a pipe, and is made anew when it is lost.
 */
#pragma once

#include "cli/options.h"
#include "output/result.h"

/*
 * A server that is away answers no sooner than its network does;
 * TCP repeats its first packets after 1 s and 3 s (RFC 6298).
 */
#define SOAK_CONNECT_NS (4 * NSEC_PER_SEC)

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

int command_soak(const struct options *o);                              /* soak.c; an exit code */
/* client.c; in the process that measures */
int command_soak_measure(const struct options *o, const struct soak *soak);

/* write_soak.c: lines to standard output, that is to the keeper. */
void soak_say_connection(const struct soak *s, const struct result *r);
void soak_say_stall(const struct soak *s, const struct stall *stall);
void soak_say_interval(const struct soak *s, const struct result *r);
/* the connection; not kept, but the gap has its words */
void soak_say_lost(const char *why, int code);
/* the time is over, or somebody has asked to stop */
void soak_say_over(void);
