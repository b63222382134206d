/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perch transfer and perch rate: lead a job through its sizes and batch sizes, watch its threads, and write what they
 * come to.
 */
#include "client.h"

#include <poll.h>
#include <stdio.h>

#include "base/message.h"
#include "base/progress.h"
#include "lead.h"
#include "output/transfer_result.h"

/* How often the threads' progress is looked at: a hundred times within the shortest time-out that makes sense. */
enum { LOOK_MS = 100 };

struct leader {
	struct lead lead;
	struct transfer x;
	struct transfer_table *table;   /* NULL: JSON, or a rate, which needs no state */
	struct cpu_time cpu, server_cpu;
	struct timespec started;
	atomic_bool closing;            /* all results are written */
};

static bool is_rate(const struct transfer *x) {
	return x->job.kind == KIND_RATE;
}

/* Completions of all lanes. */
static uint64_t progress_of(const struct transfer *x) {
	uint64_t n = 0;

	for (uint32_t i = 0; i < x->n_lanes; i++)
		n += atomic_load_explicit(&x->lanes[i]->progress, memory_order_relaxed);
	return n;
}

/* Nothing has come for too long. Is it an own device? Its thread must have ended before it is asked. */
static int stalled(struct transfer *x) {
	transfer_stop(x);
	for (uint32_t i = 0; i < x->n_lanes; i++) {
		struct lane *l = x->lanes[i];
		int e = l->busy && l->backend->check ? l->backend->check(l->run.session) : 0;

		if (e < 0)
			return e;
	}
	return failure(-ETIMEDOUT, EXIT_PEER, "no progress for %.1f s with %s (%s of %llu bytes); "
		       "the path is blocked, or the peer hangs; --timeout sets this limit",
		       (double) x->job.timeout_ns / 1e9, x->control->peer_name, op_name((int) x->job.op),
		       (unsigned long long) x->shape.size);
}

/*
 * Waits for the threads' end. The peer is heard meanwhile,
 * unless the threads talk to it themselves (--verify of writes).
 */
static int supervise(struct transfer *x) {
	struct pollfd p[2] = { { .fd = x->done_fd, .events = POLLIN }, { .fd = x->control->fd, .events = POLLIN } };
	const bool hears = !(x->job.verify && x->job.op == OP_WRITE);
	const uint64_t patience_ns = transfer_patience(x, 1);
	uint64_t progress = 0, progress_ns = monotonic_ns(), ended;
	int e = 0;

	while (e == 0 && atomic_load(&x->running) > 0) {
		(void) poll(p, hears ? 2 : 1, LOOK_MS);
		(void) !read(x->done_fd, &ended, sizeof(ended));
		if (hears && p[1].revents)
			e = control_expect(x->control, FRAME_ERROR, x->job.timeout_ns, NULL);
		if (progress_of(x) != progress)
			progress_ns = monotonic_ns();
		progress = progress_of(x);
		if (e == 0 && monotonic_ns() - progress_ns > patience_ns && atomic_load(&x->running) > 0)
			return stalled(x);
	}
	if (e < 0)
		transfer_stop(x);
	transfer_join(x);
	for (uint32_t i = 0; e == 0 && i < x->job.threads; i++)
		e = x->threads[i].error == -ECANCELED ? 0 : x->threads[i].error;
	return e;
}

/* One part of a phase: all threads from one start to one end. */
static int run_part(struct leader *l, bool warming) {
	struct transfer *x = &l->x;
	int e;

	x->warming = warming;
	x->goal = warming ? x->job.warmup : x->job.iterations;
	x->duration_ticks = clock_ticks_of(&x->lanes[0]->run.clock, warming ? x->job.warmup_ns : x->job.duration_ns);
	if (warming && !job_warms_up(&x->job))
		return 0;
	e = transfer_start(x, transfer_initiate);
	if (e < 0) {
		transfer_stop(x);
		return e;
	}
	return supervise(x);
}

/* What the target of writes must have checked of a pair: all of it. Of reads, or without --verify, nothing. */
static uint64_t owed_bytes(const struct transfer *x, uint32_t pair) {
	uint64_t batches = 0;

	for (uint32_t i = pair; i < x->n_lanes; i += x->n_pairs)
		batches += x->lanes[i]->moved_batches;
	return x->job.verify && x->job.op == OP_WRITE ? batches * shape_bytes(&x->shape) : 0;
}

static int hear_integrity(struct transfer *x, uint32_t pair, const json_t *o) {
	json_int_t checked, bad, message, offset;
	int located;

	if (json_unpack((json_t *) (uintptr_t) o, "{s:I, s:I, s:b, s:I, s:I!}", "checked_bytes", &checked, "bad_bytes",
			&bad, "located", &located, "first_message", &message, "first_offset", &offset) < 0 ||
	    checked < 0 || bad < 0 || bad > checked)
		return -EBADMSG;
	if ((uint64_t) checked != owed_bytes(x, pair))
		return failure(-EBADMSG, EXIT_PEER,
			       "%s checked %lld of %llu bytes of pair %u; is it the same version of perch?",
			       x->control->peer_name, (long long) checked, (unsigned long long) owed_bytes(x, pair),
			       pair);
	integrity_add(&x->lanes[pair]->integrity, &(struct integrity) {
		.checked_bytes = (uint64_t) checked,
		.bad_bytes = (uint64_t) bad,
		.located = located,
		.first = { .at_server = true, .message = (uint64_t) message, .offset = (uint64_t) offset },
	});
	return 0;
}

/*
 * The target's part of a phase: its processor time, and what it found wrong in each pair,
 * which is counted in the pair's first lane.
 */
static int hear_result(struct leader *l) {
	struct transfer *x = &l->x;
	json_t *payload = NULL, *pairs = NULL;
	int e;

	e = control_send(x->control, FRAME_DONE, NULL);
	if (e == 0)
		e = control_expect(x->control, FRAME_RESULT, x->job.timeout_ns, &payload);
	if (e < 0)
		return e;
	e = json_unpack(payload, "{s:F, s:F, s:o!}", "process_s", &l->server_cpu.process_s, "host_s",
			&l->server_cpu.host_s, "pairs", &pairs);
	if (e == 0 && json_array_size(pairs) != x->n_pairs)
		e = -EBADMSG;
	for (uint32_t i = 0; e == 0 && i < x->n_pairs; i++)
		e = hear_integrity(x, i, json_array_get(pairs, i));
	json_decref(payload);
	return e < 0 && !failure_text()[0]
	       ? failure(-EBADMSG, EXIT_PEER, "%s sent a malformed result message; rejected", x->control->peer_name)
	       : e;
}

static int run_phase(struct leader *l) {
	struct transfer *x = &l->x;
	int e;

	for (uint32_t i = 0; i < x->n_lanes; i++)
		lane_prepare(x->lanes[i]);
	e = control_send(x->control, FRAME_START, json_pack("{s:I, s:I}", "size", (json_int_t) x->shape.size, "batch",
							    (json_int_t) x->shape.batch));
	if (e == 0)
		e = control_expect(x->control, FRAME_STARTED, transfer_patience(x, x->shape.turns), NULL);
	if (e == 0)
		e = run_part(l, true);
	(void) clock_gettime(CLOCK_REALTIME, &l->started);
	cpu_now(&l->cpu);
	progress_begin();
	if (e == 0)
		e = run_part(l, false);
	l->cpu = cpu_since(&l->cpu);
	return e < 0 ? e : hear_result(l);
}

/* A pair, or the sum, whatever became of the phase: what was complete before a failure is kept. */
static enum exit_code write_view(const struct leader *l, int pair, bool failed) {
	enum exit_code code = EXIT_MEASURED;
	struct transfer_view view;
	struct result r;
	struct run run;

	if (view_open(&l->x, pair, &run, &view, &r) < 0)
		return EXIT_HOST;
	r.started = l->started;
	r.client_host = l->lead.host;
	r.path.known = !failed && (pair >= 0 || is_rate(&l->x)) && !(run.backend->facts->flags & BACKEND_SOLO);
	run.outcome.cpu = pair < 0 ? l->cpu : (struct cpu_time) { -1, -1 };
	r.server_cpu = pair < 0 && !failed ? l->server_cpu : (struct cpu_time) { -1, -1 };
	if (!failed)
		code = lead_judge(&l->lead, &r);
	if (failed || code == EXIT_CORRUPT) {
		r.code = failure_code();
		r.message = failure_text();
	}
	if (l->table)
		transfer_table_add(l->table, &r);
	else if (!l->lead.options->json)
		write_table_result(&r);
	else
		write_json_result(&r);
	view_close(&run, &view, &r);
	return code;
}

static void write_views(struct leader *l, bool failed) {
	progress_hide();
	/* A rate has one pair, whose line is that of all. */
	for (int pair = is_rate(&l->x) ? (int) l->x.n_pairs : 0; pair <= (int) l->x.n_pairs; pair++)
		lead_count(&l->lead, write_view(l, pair < (int) l->x.n_pairs ? pair : -1, failed));
	progress_show();
}

/* A thread is lost in a library, and cannot be joined: what is known is written, and the process ends. */
static void give_up(void *userdata) {
	struct leader *l = userdata;

	if (l->closing)
		_exit((int) l->lead.worst);
	(void) failure(-ETIMEDOUT, EXIT_PEER, "lost %s: a call of the %s backend does not come back; "
		       "the library waits for a peer that hangs or is gone; check the peer's log",
		       l->x.control->peer_name, l->x.job.backend);
	control_send_error(l->x.control);
	write_views(l, true);
	l->table = transfer_table_end(l->table);
	_exit((int) failure_code());
}

static int measure(struct leader *l, uint64_t size, uint32_t batch) {
	struct transfer *x = &l->x;
	int e;

	failure_reset();
	shape_of(&x->job, size, batch, &x->shape);
	if (is_rate(x))
		progress_step("%llu bytes", (unsigned long long) size);
	else
		progress_step("%llu bytes in batches of %u", (unsigned long long) size, batch);
	if (shape_pieces(&x->shape) > (uint64_t) x->job.outstanding * x->job.queue_pairs)
		notice("a batch of %u takes %llu work requests, and the queues have %u; "
		       "it is posted in several lists (--outstanding %u on each of %u queue pairs)", batch,
		       (unsigned long long) shape_pieces(&x->shape), x->job.outstanding * x->job.queue_pairs,
		       x->job.outstanding, x->job.queue_pairs);
	e = run_phase(l);
	if (e < 0)
		lead_failed(&l->lead, &x->job, size, e);
	write_views(l, e < 0);
	return e;
}

static int open_job(struct leader *l) {
	struct open_arguments a;
	int e;

	e = lead_open(&l->lead, &l->x.job, &a);
	return e < 0 ? e : transfer_open(&l->x, &a, l->lead.control);
}

static void say_lanes(const struct leader *l) {
	const struct transfer *x = &l->x;

	for (uint32_t i = 0; l->lead.options->log_level == LOG_INFO && i < x->n_lanes; i++) {
		const struct lane *lane = x->lanes[i];
		char cpus[CPU_LIST_MAX], place[CPU_LIST_MAX + 8] = "thread not pinned";

		if (lane->run.placed.why == PLACED)
			(void) snprintf(place, sizeof(place), "CPU %s", cpu_list_format(&lane->run.placed.cpus, cpus));
		notice("lane %u: pair %u, %s -> %s, thread %u, %u queue pairs of %u, %llu bytes; %s", i, lane->pair,
		       lane->run.session->device, json_string_value(json_object_get(lane->peer.end, "device")),
		       i % x->job.threads, x->job.queue_pairs, x->job.outstanding,
		       (unsigned long long) job_buffer(&x->job), place);
	}
}

static int measure_all(struct leader *l) {
	const struct job *job = &l->x.job;
	int e = 0;

	/* how far a batch is only its thread knows */
	progress_start(job->n_sizes * job->n_batches, 0, job->duration_ns);
	for (size_t i = 0; e == 0 && i < job->n_sizes; i++)
		for (size_t k = 0; e == 0 && !ferror(stdout) && k < job->n_batches; k++) {
			if (l->lead.options->log_level == LOG_INFO)
				notice("size %llu, batch %u: %zu of %zu", (unsigned long long) job->sizes[i],
				       job->batches[k], i * job->n_batches + k + 1, job->n_sizes * job->n_batches);
			e = measure(l, job->sizes[i], job->batches[k]);
		}
	progress_stop();
	return e;
}

int command_transfer(const struct options *o) {
	struct leader l = { .lead.options = o, .x = { .job = o->job, .done_fd = -1 } };
	int e;

	e = lead_connect(&l.lead, o->job.timeout_ns);
	if (e < 0)
		return (int) failure_code();
	e = open_job(&l);
	if (e == 0)
		e = transfer_watch(&l.x, give_up, &l);
	if (e == 0) {
		lead_remark(l.x.lanes[0]->run.session);
		say_lanes(&l);
		placed_remark(&l.x.lanes[0]->run.placed, &l.x.lanes[0]->peer.placed);
	}
	if (e == 0 && !o->json && is_rate(&l.x))
		write_table_header(o->host, &l.x.lanes[0]->run, l.x.lanes[0]->peer.end);
	else if (e == 0 && !o->json)
		e = transfer_table_new(&l.x, o->host, o->boxed, &l.table);
	if (e == 0)
		e = measure_all(&l);
	l.table = transfer_table_end(l.table);
	lead_end(&l.lead, e);
	l.closing = true;
	transfer_close(&l.x);
	l.lead.control = control_close(l.lead.control);
	return (int) l.lead.worst;
}
