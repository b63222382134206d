/* SPDX-License-Identifier: Apache-2.0 */
#include "lead.h"

#include <stdio.h>

#include "backends/registry.h"
#include "base/message.h"
#include "output/transfer_result.h"

int lead_connect(struct lead *l, uint64_t connect_ns) {
	const struct options *o = l->options;
	struct token token = { 0 };
	int e;

	e = options_validate(o);
	if (e == 0)
		e = backend_require(&o->job);
	if (e == 0)
		e = token_read(o->token_file, &token);
	if (e == 0)
		e = control_connect(o->host, o->port, o->bind, &token, connect_ns, &l->control);
	token_forget(&token);
	if (e < 0)
		return e;
	control_set_timeout(l->control, o->job.timeout_ns);
	host_name(l->host, sizeof(l->host));
	return 0;
}

static int resolve(struct job *job, const struct open_arguments *a) {
	const struct backend *b = backend_find(job->backend);
	struct job lane;
	int e;

	if (!b->resolve)
		return 0;
	if (!job_has_lanes(job))
		return b->resolve(job, a);
	/* The first lane's device decides which provider it is, for all. */
	job_for_lane(job, 0, &lane);
	e = b->resolve(&lane, a);
	memcpy(job->provider, lane.provider, sizeof(lane.provider));
	return e;
}

int lead_open(const struct lead *l, struct job *job, struct open_arguments *ret) {
	struct control *c = l->control;
	int e;

	*ret = (struct open_arguments) { .job = job, .role = ROLE_CLIENT, .local = &c->local, .peer = &c->peer,
					 .wake_fd = -1 };
	e = exchange_hear_identity(c, job->timeout_ns, ret);
	if (e == 0)
		e = resolve(job, ret);
	return e < 0 ? e : exchange_say_job(c, job);
}

void lead_remark(const struct session *s) {
	if (s->simulated)
		notice("%s: simulated by a test's stand-in, so these figures say nothing about hardware", s->device);
}

static const char *noun_of(const struct result *r) {
	return r->transfer ? "transfer" : "message";
}

static void say_corruption(const struct result *r) {
	(void) failure(-EBADMSG, EXIT_CORRUPT, "payload corrupted: %llu of %llu checked bytes of %s, "
		       "%llu bytes a %s, first in %s %llu at byte %llu; do not trust this path with data",
		       (unsigned long long) r->integrity.bad_bytes, (unsigned long long) r->integrity.checked_bytes,
		       op_name((int) r->run->job->op), (unsigned long long) r->size, noun_of(r), noun_of(r),
		       (unsigned long long) r->integrity.first.message,
		       (unsigned long long) r->integrity.first.offset);
}

/* What was measured, for messages about it: "64 bytes", "batches of 4 times 64 bytes". */
static void say_limit(const struct result *r, const char *what) {
	if (r->transfer)
		notice("batches of %u times %llu bytes: %s", r->transfer->shape.batch, (unsigned long long) r->size,
		       what);
	else
		notice("%llu bytes: %s", (unsigned long long) r->size, what);
}

/* A limit that cannot be judged is missed: silence would flatter. */
static bool misses_limit(const struct options *o, const struct result *r) {
	double p99 = result_p99_us(r), gbit = result_gbit_s(r);
	char what[160];

	if (o->max_p99_us > 0 && p99 < 0)
		(void) snprintf(what, sizeof(what), "--max-p99 counts as missed, because %llu samples do not support "
				"a p99 (1000 do)", (unsigned long long) r->run->total->count);
	else if (o->max_p99_us > 0 && p99 > o->max_p99_us)
		(void) snprintf(what, sizeof(what), "p99 of %.2f us is above --max-p99 %g", p99, o->max_p99_us);
	else if (o->min_gbit > 0 && gbit < o->min_gbit)
		(void) snprintf(what, sizeof(what), "%.3f Gb/s are below --min-gbit %g", gbit, o->min_gbit);
	else
		return false;
	say_limit(r, what);
	return true;
}

enum exit_code lead_judge(const struct lead *l, const struct result *r) {
	bool of_pair = r->transfer && r->transfer->pair >= 0, of_sum = r->transfer && !of_pair;

	if (r->integrity.bad_bytes > 0) {
		if (!of_sum) /* said of the pair that has it */
			say_corruption(r);
		return EXIT_CORRUPT;
	}
	/* Of several pairs limits judge the sum. */
	return !of_pair && misses_limit(l->options, r) ? EXIT_LIMIT : EXIT_MEASURED;
}

void lead_count(struct lead *l, enum exit_code code) {
	if (code == EXIT_CORRUPT || l->worst == EXIT_MEASURED)
		l->worst = code;
}

void lead_failed(const struct lead *l, const struct job *job, uint64_t size, int e) {
	if (!failure_text()[0])
		(void) failure(e, EXIT_INTERNAL, "%s of %llu bytes failed: %s", op_name((int) job->op),
			       (unsigned long long) size, strerror(-e));
	exchange_blame(l->control);
}

void lead_end(struct lead *l, int e) {
	if (e >= 0)
		return;
	control_send_error(l->control);
	/* What was corrupted stays the worst news, whatever came after it. */
	if (l->worst != EXIT_CORRUPT)
		l->worst = failure_code();
}
