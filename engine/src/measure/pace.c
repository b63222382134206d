/* SPDX-License-Identifier: Apache-2.0 */
#include "pace.h"

/* Slack of the kernel's timers for ordinary threads is 50 us (prctl(2), PR_SET_TIMERSLACK); twice that is spun. */
#define SPIN_NS (100 * NSEC_PER_USEC)

void pace_begin(struct pace *p, const struct run *r) {
	const struct job *job = r->job;
	double per_second = job->rate_unit == RATE_BITS ? job->rate / 8 / (double) r->phase.size : job->rate;

	*p = (struct pace) {
		.paced = job->rate_unit != RATE_NONE,
		.gap = clock_ticks_of(&r->clock, job->gap_ns),
		.period = job->rate_unit == RATE_NONE ? 0 : (double) NSEC_PER_SEC / per_second / r->clock.ns_per_tick,
		.origin = clock_ticks(&r->clock),
		.backlog = clock_ticks_of(&r->clock, RUN_RATE_BACKLOG_S * NSEC_PER_SEC),
	};
}

static uint64_t spin_until(const struct run *r, uint64_t due) {
	uint64_t now = clock_ticks(&r->clock);

	while (now < due && !run_is_to_stop()) {
		uint64_t left = clock_ns(&r->clock, due - now);

		if (left > SPIN_NS) {
			struct timespec t = { .tv_sec = (time_t) ((left - SPIN_NS) / NSEC_PER_SEC),
					      .tv_nsec = (long) ((left - SPIN_NS) % NSEC_PER_SEC) };

			(void) nanosleep(&t, NULL);
		}
		now = clock_ticks(&r->clock);
	}
	return now;
}

static uint64_t due_time(const struct pace *p) {
	return p->origin + (uint64_t) ((double) p->done * p->period);
}

uint64_t pace_mark(const struct pace *p) {
	return p->paced ? due_time(p) : 0;
}

void pace_resume(struct pace *p, uint64_t mark) {
	p->origin = mark;
}

/* Too far behind: the messages that should have gone by now are counted, and the schedule starts anew. */
static void give_up_backlog(struct pace *p, uint64_t now) {
	uint64_t due = due_time(p);

	if (now < due || now - due <= p->backlog)
		return;
	p->skipped += (uint64_t) ((double) (now - due) / p->period);
	p->origin = now;
	p->done = 0;
}

uint64_t pace_next(struct pace *p, const struct run *r, uint64_t *ret_late) {
	uint64_t due, now;

	*ret_late = 0;
	if (!p->paced)
		return p->gap ? spin_until(r, clock_ticks(&r->clock) + p->gap) : clock_ticks(&r->clock);
	give_up_backlog(p, clock_ticks(&r->clock));
	due = due_time(p);
	p->done++;
	now = spin_until(r, due);
	*ret_late = now > due ? now - due : 0; /* a stop ends the wait before its time */
	return now;
}

bool pace_is_behind(const struct pace *p, uint64_t now) {
	uint64_t due = due_time(p);

	if (!p->paced)
		return false;
	return p->skipped > 0 || (now > due && (double) (now - due) > p->period + (double) (now - p->origin) / 10);
}

bool pace_due(struct pace *p, uint64_t now) {
	if (!p->paced)
		return true;
	give_up_backlog(p, now);
	if (now < due_time(p))
		return false;
	p->done++;
	return true;
}

/*
 * Who sleeps past the run's own event (a window, the end) is late by the slack, which is as much as any reading may be.
 */
uint64_t pace_sleep_ns(const struct pace *p, const struct run *r, uint64_t now) {
	uint64_t due = due_time(p), left = due > now ? clock_ns(&r->clock, due - now) : 0;
	uint64_t event = r->next_event > now ? clock_ns(&r->clock, r->next_event - now) : 0;

	return left > SPIN_NS ? MIN(MIN(left - SPIN_NS, event), r->sleep_ns) : 0;
}
