/* SPDX-License-Identifier: Apache-2.0 */
/* lat and bw: leads one job through its sizes, and writes each as soon as it is measured. */
#include "client.h"

#include <stdio.h>

#include "output/bad_byte.h"
#include "lead.h"
#include "personality.h"
#include "base/progress.h"
#include "soak.h"

struct client {
	struct lead lead;
	struct job job;
	struct run run;
	struct peer peer;
	bool half_round_trip;
	struct result *current;         /* of the size (soak: the interval) under way */
	struct soak *soak;              /* NULL: this is none */
};

/* A run's callbacks get the run, which is a part of the client. */
static const struct client *client_of(const struct run *r) {
	return (const struct client *) (const void *) ((const char *) r - offsetof(struct client, run));
}

/* A write that may be lost is seen by nobody but a target that polls for it, or that looks because of --verify. */
static bool loss_is_unknown(const struct client *c) {
	return c->run.session->lossy && c->job.op == OP_WRITE && !c->job.verify && !c->half_round_trip;
}

/* UC and UD: only what arrived was moved, and what was waited for in vain is no part of the time. */
static int count_losses(struct client *c, struct result *r, uint64_t theirs, uint64_t received, uint64_t lost,
			uint64_t idle_ns) {
	struct outcome *o = &c->run.outcome;

	r->sent = r->messages;
	r->loss_unknown = loss_is_unknown(c);
	lost += o->lost;
	if (op_takes_receive(c->job.op)) {
		lost += o->messages - MIN(received, o->messages);
		lost += c->job.bidirectional ? theirs - MIN(o->received, theirs) : 0;
	}
	r->lost = MIN(lost, r->messages);
	r->path.lost_bytes += r->lost * r->size;
	r->messages -= r->lost;
	r->bytes = r->messages * r->size;
	o->elapsed_ns -= MIN(MAX(o->idle_ns, idle_ns), o->elapsed_ns);
	if (r->lost > 0)
		o->peak_bytes_per_s = o->min_bytes_per_s = -1; /* of what was sent: not what arrived */
	if (r->sent > 0 && r->messages == 0)
		return failure(-ENODATA, EXIT_PEER, "%s received none of %llu messages: connection %s loses "
			       "what it cannot deliver and says nothing; check the path and the GIDs of both devices",
			       c->lead.control->peer_name, (unsigned long long) r->sent,
			       connection_name((int) c->job.verbs.connection));
	return 0;
}

static int hear_result(struct client *c, struct result *r) {
	json_int_t messages, received, checked, bad, lost, idle, resident, handles;
	struct run *run = &c->run;
	struct integrity theirs = { .located = false };
	json_t *payload = NULL, *first = NULL;
	int e;

	e = control_expect(c->lead.control, FRAME_RESULT, c->job.timeout_ns, &payload);
	if (e < 0)
		return e;
	e = json_unpack(payload, "{s:F, s:F, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s?o!}", "process_s",
			&r->server_cpu.process_s, "host_s", &r->server_cpu.host_s, "messages", &messages, "received",
			&received, "checked_bytes", &checked, "bad_bytes", &bad, "lost", &lost, "idle_ns", &idle,
			"resident_bytes", &resident, "handles", &handles, "first_bad", &first);
	if (e == 0 && first)
		e = bad_byte_hear(first, &theirs.first);
	theirs.located = first;
	json_decref(payload);
	if (e < 0 || messages < 0 || received < 0 || checked < 0 || bad < 0 || lost < 0 || idle < 0)
		return failure(-EBADMSG, EXIT_PEER, "%s sent a malformed result message; rejected",
			       c->lead.control->peer_name);
	r->server_footprint = (struct footprint) { resident, handles };
	theirs.checked_bytes = (uint64_t) checked;
	theirs.bad_bytes = (uint64_t) bad;
	integrity_add(&r->integrity, &theirs);
	r->messages = run->outcome.messages + (c->job.bidirectional ? (uint64_t) messages : 0);
	r->bytes = r->messages * r->size;
	result_claim(r, (uint64_t) messages);
	if (run->session->lossy)
		return count_losses(c, r, (uint64_t) messages, (uint64_t) received, (uint64_t) lost, (uint64_t) idle);
	/* What is timed must be what was received. */
	if (op_takes_receive(c->job.op) && !(run->backend->facts->flags & BACKEND_SOLO) &&
	    (uint64_t) received != run->outcome.messages)
		return failure(-EPROTO, EXIT_PEER, "%s received %lld of %llu messages", c->lead.control->peer_name,
			       (long long) received, (unsigned long long) run->outcome.messages);
	return 0;
}

static void table_header(const struct options *o, const struct run *r, const json_t *server) {
	write_table_header(o->host, r, server);
}

static void table_result(const struct options *o, const struct result *r) {
	(void) o;
	write_table_result(r);
}

static void json_result(const struct options *o, const struct result *r) {
	(void) o;
	write_json_result(r);
}

static const struct writer json_writer = { .result = json_result, .interval = write_json_interval },
	table_writer = { .header = table_header, .result = table_result, .interval = write_table_interval };

static const struct writer *writer_of(const struct options *o) {
	return o->personality ? &personality_writer : o->json ? &json_writer : &table_writer;
}

static void print_interval(struct run *r, json_t *interval) {
	const struct writer *w = writer_of(client_of(r)->lead.options);

	progress_hide();
	if (w->interval)
		w->interval(r, interval);
	progress_show();
	/* Without a reader the rest would load the fabric for nothing. */
	if (ferror(stdout))
		run_ask_to_stop();
}

/* duration_ns: of a measurement without a count. */
static int run_phase(struct client *c, uint64_t size, bool warmup, uint64_t duration_ns, struct result *ret) {
	struct run *r = &c->run;
	json_t *start;
	int e;

	r->phase = (struct phase) {
		.size = size,
		.warmup = warmup,
		.half_round_trip = c->half_round_trip,
		.count = warmup ? c->job.warmup : c->job.iterations,
		.duration_ns = warmup ? c->job.warmup_ns : duration_ns,
	};
	e = verify_prepare(r);
	if (e < 0)
		return e;
	/* The server may send as soon as it has answered START: what finds no receive then is delayed, or lost. */
	if (c->job.bidirectional && op_takes_receive(c->job.op))
		e = run_lend_all(r, run_receives(&c->job, r->arena.window));
	if (e == 0)
		e = phase_to_json(&r->phase, &start);
	if (e == 0)
		e = control_send(c->lead.control, FRAME_START, start);
	if (e == 0)
		e = control_expect(c->lead.control, FRAME_STARTED, verify_patience(r), NULL);
	if (e < 0)
		return e;
	(void) clock_gettime(CLOCK_REALTIME, &ret->started);
	run_begin(r);
	e = c->job.kind == KIND_LATENCY ? latency_client(r) : bandwidth_client(r);
	run_end(r);
	/* At once: what was found corrupted here is so, whether or not the server can still be asked. */
	integrity_add(&ret->integrity, &r->outcome.integrity);
	if (e == 0 && c->job.kind == KIND_LATENCY)
		e = run_say(r, FRAME_FINISH, r->outcome.messages);
	if (e == 0)
		e = control_send(c->lead.control, FRAME_DONE,
				 json_pack("{s:I}", "elapsed_ns", (json_int_t) r->outcome.elapsed_ns));
	return e < 0 ? e : hear_result(c, ret);
}

static void write_result(const struct client *c, struct result *r) {
	if (failure_text()[0]) {
		r->code = failure_code();
		r->message = failure_text();
	}
	progress_hide();
	writer_of(c->lead.options)->result(c->lead.options, r);
	progress_show();
}

/* Of a soak: what had come until the connection was lost is an interval, too, which ends where the silence began. */
static void say_interval(const struct client *c, struct run *run, struct result *r, bool lost) {
	struct outcome *o = &run->outcome;
	bool silent = run->events == run->events_seen && run->progress_ns > run->begin_ns && !run_is_to_stop();

	if (run->phase.warmup || r->started.tv_sec == 0)
		return; /* it had not begun */
	if (lost) {
		o->end_ns = silent ? run->progress_ns : monotonic_ns();
		o->ended = clock_wall_at(o->end_ns);
		o->elapsed_ns = o->end_ns - run->begin_ns;
		histogram_add(run->total, run->interval);
		histogram_reset(run->interval);
		r->messages = o->messages;
		r->bytes = r->messages * r->size;
		r->path.known = false; /* the warm-up's claim is of a part of it */
	}
	if (failure_text()[0]) {
		r->code = failure_code();
		r->message = failure_text();
	}
	soak_say_interval(c->soak, r);
}

static void write_stalled(struct run *r) {
	const struct client *c = client_of(r);

	control_send_error(c->lead.control);
	integrity_add(&c->current->integrity, &r->outcome.integrity);
	if (!c->soak) {
		write_result(c, c->current);
		return;
	}
	say_interval(c, r, c->current, true);
	soak_say_lost(failure_text(), (int) failure_code());
}

/* Before anything is known of it. */
static struct result new_result(const struct client *c, uint64_t size) {
	return (struct result) {
		.run = &c->run,
		.size = size,
		.server = c->peer.end,
		.client_host = c->lead.host,
		.server_cpu = { -1, -1 },
		.server_footprint = { -1, -1 },
	};
}

static int measure_size(struct client *c, uint64_t size) {
	struct result r = new_result(c, size), warm;
	enum exit_code code = EXIT_MEASURED;
	int e = 0;

	failure_reset();
	c->run.traffic = false;
	c->current = &r;
	c->run.on_stall = write_stalled;
	progress_step("%llu bytes", (unsigned long long) size);
	if (job_warms_up(&c->job))
		e = run_phase(c, size, true, 0, &r);
	if (e == 0) {
		progress_begin();
		/* What was corrupted while warming up is corrupted all the same: integrity covers both. */
		warm = r;
		r = new_result(c, size);
		r.integrity = warm.integrity;
		r.path = warm.path;
		e = run_phase(c, size, false, c->job.duration_ns, &r);
	}
	c->run.traffic = c->run.events > 0;
	if (e == 0)
		code = lead_judge(&c->lead, &r);
	else
		lead_failed(&c->lead, &c->job, size, e);
	c->run.on_stall = NULL;
	write_result(c, &r);
	lead_count(&c->lead, code);
	return e;
}

/*
 * Until the next mark of the interval's grid, which begins with the soak;
 * what is less than a tenth joins its neighbour. 0: it is over.
 */
static uint64_t time_of_interval(const struct client *c) {
	const struct job *j = &c->lead.options->job;
	uint64_t now = (uint64_t) ((int64_t) monotonic_ns() - c->soak->epoch_ns), least = j->interval_ns / 10;
	uint64_t next = (now + least) / j->interval_ns * j->interval_ns + j->interval_ns;

	if (next + least > j->duration_ns)
		next = j->duration_ns;
	return next > now ? next - now : 0;
}

/*
 * Nothing is sent between two intervals; where the ends took long to agree, something stood still.
 * It is the first stall of the interval that follows, and counted with its others.
 */
static void add_silence(struct run *r, uint64_t last) {
	const struct stall silence = { .start_ns = last, .end_ns = r->begin_ns };

	if (last > 0 && r->stall_after_ns > 0 && r->begin_ns > last && r->begin_ns - last >= r->stall_after_ns)
		outcome_add_stall(&r->outcome, &silence, true);
}

/* A phase for each interval: both ends agree on what arrived, and what is said meanwhile is no part of either. */
static int soak_interval(struct client *c, const struct result *warm, uint64_t ns) {
	struct result r = new_result(c, c->job.sizes[0]);
	uint64_t last = c->run.outcome.end_ns;
	int e;

	failure_reset();
	r.integrity = warm->integrity;
	r.path = warm->path;
	c->current = &r;
	e = run_phase(c, r.size, false, ns, &r);
	c->run.traffic = c->run.events > 0;
	add_silence(&c->run, last);
	if (e == 0)
		lead_count(&c->lead, lead_judge(&c->lead, &r));
	else
		lead_failed(&c->lead, &c->job, r.size, e);
	say_interval(c, &c->run, &r, e < 0);
	c->current = NULL;
	return e;
}

static int measure_soak(struct client *c) {
	struct result warm = new_result(c, c->job.sizes[0]);
	uint64_t ns;
	int e = 0;

	c->current = &warm;
	c->run.on_stall = write_stalled;
	if (job_warms_up(&c->job))
		e = run_phase(c, warm.size, true, 0, &warm);
	if (e < 0)
		return e;
	if (c->soak->begins)
		c->soak->epoch_ns = (int64_t) monotonic_ns();
	soak_say_connection(c->soak, &warm);
	run_watch_stalls(&c->run, c->lead.options->stall_ns);
	c->run.outcome.end_ns = 0;
	/*
	 * What the ends agree on between two intervals takes nothing off a bandwidth's pace.
	 * A latency's begins anew: its probes would be late.
	 */
	c->run.keeps_pace = c->job.kind == KIND_BANDWIDTH;
	while (e == 0 && !run_is_to_stop() && (ns = time_of_interval(c)) > 0) {
		e = soak_interval(c, &warm, ns);
		/* What the warm-up moved, or found corrupted, belongs to the first interval. */
		warm = new_result(c, warm.size);
	}
	c->run.on_stall = NULL;
	if (e == 0)
		soak_say_over();
	return e;
}

static int choose_definition(struct client *c) {
	const struct job *j = &c->job;
	bool notify = c->run.session->can_notify && c->peer.can_notify;

	if (j->kind == KIND_LATENCY && op_takes_receive(j->op))
		c->half_round_trip = true;
	else if (j->kind == KIND_LATENCY && j->op == OP_WRITE && j->definition != DEFINITION_COMPLETION)
		c->half_round_trip = notify;
	if (j->definition == DEFINITION_HALF_ROUND_TRIP && !c->half_round_trip)
		return failure(-EOPNOTSUPP, EXIT_HOST,
			       "--definition half_round_trip: %s%s%s cannot see a write arrive: %s", j->backend,
			       j->provider[0] ? " " : "", j->provider,
			       c->run.session->no_notify ? c->run.session->no_notify :
			       "it has no remote completion data for writes; use --definition completion");
	c->run.phase.half_round_trip = c->half_round_trip;
	return 0;
}

static int open_job(struct client *c) {
	struct open_arguments a;
	int e;

	e = lead_open(&c->lead, &c->job, &a);
	if (e == 0)
		e = run_open(&c->run, &a, c->lead.control);
	if (e == 0)
		e = exchange_addresses(&c->run, &c->peer);
	return e < 0 ? e : choose_definition(c);
}

static void client_close(struct client *c) {
	run_close(&c->run);
	json_decref(c->peer.end);
	c->lead.control = control_close(c->lead.control);
}

static void remark(const struct client *c) {
	/* Of a soak, when it begins. */
	if (!c->lead.options->personality && (!c->soak || c->soak->begins))
		placed_remark(&c->run.placed, &c->peer.placed);
	if (loss_is_unknown(c))
		notice("--op write over %s: arrivals are not reported, so losses are unknown and the %s counts sent "
		       "messages; --verify or --op write-imm counts losses",
		       connection_name((int) c->job.verbs.connection),
		       c->job.kind == KIND_LATENCY ? "latency" : "bandwidth");
	lead_remark(c->run.session);
}

static int measure_sizes(struct client *c) {
	int e = 0;

	if (!c->lead.options->personality)
		progress_start(c->job.n_sizes, c->job.iterations, c->job.duration_ns);
	for (size_t i = 0; e == 0 && !ferror(stdout) && i < c->job.n_sizes; i++)
		e = measure_size(c, c->job.sizes[i]);
	progress_stop();
	return e;
}

static int measure(const struct options *o, struct soak *soak) {
	const struct writer *w = writer_of(o);
	struct client c = { .lead.options = o, .job = o->job, .soak = soak };
	bool opened;
	int e;

	if (soak)
		c.job.interval_ns = 0; /* each is a phase of its own */
	e = lead_connect(&c.lead, soak ? MIN(c.job.timeout_ns, SOAK_CONNECT_NS) : c.job.timeout_ns);
	if (e < 0)
		return (int) failure_code();
	e = open_job(&c);
	c.run.on_interval = print_interval;
	if (e == 0)
		remark(&c);
	if (e == 0 && w->check)
		e = w->check(o, &c.run);
	opened = e == 0;
	if (opened && w->header)
		w->header(o, &c.run, c.peer.end);
	if (e == 0)
		e = soak ? measure_soak(&c) : measure_sizes(&c);
	if (opened && w->end)
		w->end(o);
	lead_end(&c.lead, e);
	client_close(&c);
	return (int) c.lead.worst;
}

int command_measure(const struct options *o) {
	return o->soak_file[0] ? command_soak(o) : measure(o, NULL);
}

int command_soak_measure(const struct options *o, const struct soak *soak) {
	struct soak own = *soak;
	int code = measure(o, &own);

	if (failure_text()[0])
		soak_say_lost(failure_text(), (int) failure_code());
	return code;
}
