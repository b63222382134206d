/* SPDX-License-Identifier: Apache-2.0 */
#include "interval.h"

#include "base/progress.h"
#include "stats/figures.h"

static uint64_t earliest(const struct run *r) {
	uint64_t t = r->end;

	t = MIN(t, r->next_interval);
	t = MIN(t, r->next_look);
	return MIN(t, r->next_window);
}

void intervals_begin(struct run *r) {
	const struct job *job = r->job;
	bool timed = !r->phase.warmup && r->role == ROLE_CLIENT;

	r->begin = clock_ticks(&r->clock);
	r->end = r->phase.count ? UINT64_MAX : r->begin + clock_ticks_of(&r->clock, r->phase.duration_ns);
	r->next_interval = timed && job->interval_ns ? r->begin + clock_ticks_of(&r->clock, job->interval_ns)
						     : UINT64_MAX;
	r->next_window = timed && job->kind == KIND_BANDWIDTH ? r->begin + clock_ticks_of(&r->clock, RUN_WINDOW_NS)
							      : UINT64_MAX;
	r->next_look = r->begin + clock_ticks_of(&r->clock, RUN_LOOK_NS);
	r->event_error = 0;
	r->interval_start = r->window_start = r->begin;
	r->interval_bytes = r->window_bytes = 0;
	r->outcome.peak_bytes_per_s = r->outcome.min_bytes_per_s = -1;
	if (timed && job->interval_ns)
		r->outcome.intervals = json_array();
	r->next_event = earliest(r);
}

/* Bytes over the time that really passed: a late reading lengthens its window, and never makes a peak. */
static void window_event(struct run *r, uint64_t now, uint64_t bytes) {
	double rate = (double) (bytes - r->window_bytes) * 1e9 / (double) clock_ns(&r->clock, now - r->window_start);
	struct outcome *o = &r->outcome;

	o->peak_bytes_per_s = MAX(o->peak_bytes_per_s, rate);
	o->min_bytes_per_s = o->min_bytes_per_s < 0 ? rate : MIN(o->min_bytes_per_s, rate);
	r->window_start = now;
	r->window_bytes = bytes;
	r->next_window = now + clock_ticks_of(&r->clock, RUN_WINDOW_NS);
}

static void interval_event(struct run *r, uint64_t now, uint64_t bytes) {
	double start = (double) clock_ns(&r->clock, r->interval_start - r->begin) / 1e9;
	double end = (double) clock_ns(&r->clock, now - r->begin) / 1e9;
	bool latency = r->job->kind == KIND_LATENCY;
	uint64_t count = latency ? r->interval->count : (bytes - r->interval_bytes) / r->phase.size;
	json_t *l = latency ? latency_json(r->interval, r->phase.half_round_trip) : NULL;
	json_t *o;

	/* An interval without a message is a finding, and stands here with a count of 0. */
	o = json_pack("{s:f, s:f, s:I, s:o, s:o}", "start_s", start, "end_s", end, "count", (json_int_t) count,
		      "gbit_s",
		      latency ? json_null() : json_real((double) (bytes - r->interval_bytes) * 8e-9 / (end - start)),
		      "latency_us", l ? l : json_null());
	if (r->on_interval)
		r->on_interval(r, o);
	if (json_array_size(r->outcome.intervals) < RUN_INTERVALS_MAX)
		(void) json_array_append(r->outcome.intervals, o);
	json_decref(o);
	if (latency) {
		histogram_add(r->total, r->interval);
		histogram_reset(r->interval);
	}
	r->interval_start = now;
	r->interval_bytes = bytes;
	/* On the grid of the interval, not of the moments when it was noticed. */
	do
		r->next_interval += clock_ticks_of(&r->clock, r->job->interval_ns);
	while (r->next_interval <= now);
}

bool run_event(struct run *r, uint64_t now, uint64_t bytes) {
	if (now >= r->next_window)
		window_event(r, now, bytes);
	if (now >= r->next_interval)
		interval_event(r, now, bytes);
	if (now >= r->next_look) {
		r->event_error = run_look(r);
		r->next_look = now + clock_ticks_of(&r->clock, RUN_LOOK_NS);
		progress_done(r->outcome.messages);
	}
	r->next_event = earliest(r);
	/* A server that sends, too, has nobody left to send to when its client has ended early. */
	return now >= r->end || r->event_error < 0 || run_is_to_stop() || (r->peer_finished && !r->phase.count);
}
