/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the next message is due: after a gap, or at a rate. At a rate a message counts from its intended time,
 * so a stall is seen by every message that it delayed (coordinated omission). Waits are spun, since sleeping adds
 * the timer's own slack (50 us by default, prctl(2)); messages further apart than that sleep most of the way.
 */
#pragma once

#include "run.h"

struct pace {
	bool paced;             /* by rate */
	uint64_t gap;           /* ticks */
	double period;          /* ticks between intended times */
	uint64_t origin;        /* intended time of message 0, after skips */
	uint64_t done;          /* messages since origin */
	uint64_t backlog;       /* ticks behind which the rest is given up */
	uint64_t skipped;
};

void pace_begin(struct pace *p, const struct run *r);

/*
 * When the next message is due; a later phase can go on from there,
 * as if it had never been interrupted. 0: there is no pace.
 */
uint64_t pace_mark(const struct pace *p);
void pace_resume(struct pace *p, uint64_t mark);

/* True where each message needs a clock reading of its own before it is sent. */
static inline bool pace_active(const struct pace *p) {
	return p->paced || p->gap;
}

/*
 * Waits for the next turn; answers the time now, and in *ret_late the ticks that have passed since the intended time.
 */
uint64_t pace_next(struct pace *p, const struct run *r, uint64_t *ret_late);

/*
 * True where messages were skipped, or the next one is overdue by a tenth of all the time:
 * the rate is above what the path can do.
 */
bool pace_is_behind(const struct pace *p, uint64_t now);

/* For bandwidth: is the next message due at `now`? Takes the turn if so. */
bool pace_due(struct pace *p, uint64_t now);

/*
 * How long one may sleep at `now` and still be there in time for the next message,
 * and for the run's next event. 0: spin.
 */
uint64_t pace_sleep_ns(const struct pace *p, const struct run *r, uint64_t now);
