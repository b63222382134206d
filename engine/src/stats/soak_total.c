/* SPDX-License-Identifier: Apache-2.0 */
#include "soak_total.h"

#include <math.h>

#include "figures.h"
#include "base/message.h"

int soak_total_new(struct soak_total *ret) {
	*ret = (struct soak_total) { .peak_gbit = -1, .least_gbit = -1 };
	if (histogram_new(&ret->histogram) < 0)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a histogram (%zu KiB)",
			       sizeof(struct histogram) / 1024);
	return 0;
}

void soak_total_done(struct soak_total *t) {
	t->histogram = histogram_free(t->histogram);
	json_decref(t->connection);
	json_decref(t->began);
	json_decref(t->ended);
	json_decref(t->longest_began);
	json_decref(t->first_bad);
	*t = (struct soak_total) { 0 };
}

/* A number; what is null or missing is not one. */
static double number(const json_t *o, const char *key) {
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static uint64_t whole(const json_t *o, const char *key) {
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) && json_integer_value(v) > 0 ? (uint64_t) json_integer_value(v) : 0;
}

/*
 * The text of a histogram carries counts only;
 * what was exact beside them stands in the interval's latencies, halved where the histogram has whole round trips,
 * so that the sum of all intervals is as exact as one run over the whole time.
 */
static int add_histogram(struct soak_total *t, const json_t *line) {
	_cleanup_(histogram_freep) struct histogram *h = NULL;
	const json_t *histogram = json_object_get(line, "histogram"), *l = json_object_get(line, "latency_us");
	const char *data = json_string_value(json_object_get(histogram, "data")),
		*unit = json_string_value(json_object_get(histogram, "unit"));
	double ns, mean, stddev;
	int e;

	if (!json_is_object(histogram) || !json_is_object(l))
		return 0; /* bandwidth, or an interval without a message */
	if (!data || !unit)
		return -EBADMSG;
	e = histogram_decode(data, &h);
	if (e < 0)
		return e;
	t->half_round_trip = streq(unit, "ns_round_trip");
	ns = t->half_round_trip ? 2000 : 1000;
	mean = number(l, "mean") * ns;
	stddev = number(l, "stddev") * ns;
	if (!isfinite(mean) || !isfinite(stddev) || !isfinite(number(l, "min")) || !isfinite(number(l, "max")))
		return -EBADMSG;
	h->min = (uint64_t) llround(number(l, "min") * ns);
	h->max = (uint64_t) llround(number(l, "max") * ns);
	h->sum = (unsigned __int128) (mean * (double) h->count + 0.5);
	h->sum_squares =
		(unsigned __int128) (mean * mean * (double) h->count + stddev * stddev * (double) (h->count - 1));
	histogram_add(t->histogram, h);
	return 0;
}

static void add_bandwidth(struct soak_total *t, const json_t *b) {
	double peak = number(b, "peak_gbit_s"), least = number(b, "min_interval_gbit_s");

	if (peak > t->peak_gbit)
		t->peak_gbit = peak;
	if (isfinite(least) && (t->least_gbit < 0 || least < t->least_gbit))
		t->least_gbit = least;
}

static void add_checks(struct soak_total *t, const json_t *line) {
	const json_t *integrity = json_object_get(line, "integrity"), *loss = json_object_get(line, "loss"),
		*path = json_object_get(line, "path");
	const json_t *tcp = json_object_get(line, "tcp"), *rate = json_object_get(line, "rate");

	t->claimed += number(path, "claimed_bytes");
	t->sent += number(path, "client_sent_bytes");
	t->received += number(path, "client_received_bytes");
	t->lost += number(path, "lost_bytes");
	if (json_is_object(integrity)) {
		t->verified = true;
		t->checked_bytes += whole(integrity, "checked_bytes");
		t->bad_bytes += whole(integrity, "bad_bytes");
		if (!t->first_bad)
			t->first_bad = json_incref(json_object_get(integrity, "first_bad"));
	}
	if (json_is_object(loss)) {
		t->lossy = true;
		t->sent_messages += number(loss, "sent_messages");
		t->lost_messages += number(loss, "lost_messages");
	}
	if (json_is_object(rate)) {
		t->skipped += number(rate, "skipped");
		t->behind_s += json_is_true(json_object_get(rate, "overloaded")) ? number(line, "elapsed_s") : 0;
	}
	/* The socket counts from its own beginning. */
	if (json_is_object(tcp)) {
		t->tcp = true;
		t->retransmissions = number(tcp, "retransmissions");
	}
}

static int add_interval(struct soak_total *t, const json_t *line) {
	const json_t *cpu = json_object_get(line, "cpu");
	double elapsed = number(line, "elapsed_s");
	int e;

	e = add_histogram(t, line);
	if (e < 0 || !isfinite(elapsed))
		return e == -ENOMEM ? e : -EBADMSG;
	t->intervals++;
	t->messages += whole(line, "messages");
	t->bytes += whole(line, "bytes");
	t->elapsed_s += elapsed;
	t->client_s += number(cpu, "client_s");
	t->server_s += number(cpu, "server_s");
	t->client_system_s += number(cpu, "client_system_s");
	t->server_system_s += number(cpu, "server_system_s");
	add_bandwidth(t, json_object_get(line, "bandwidth"));
	add_checks(t, line);
	/* Stalls beyond those that have lines are only counted here, so that all are. */
	t->stalls += whole(json_object_get(line, "stalls"), "count");
	t->stall_s += fmax(number(json_object_get(line, "stalls"), "total_s"), 0);
	return 0;
}

static void add_stall(struct soak_total *t, const json_t *line) {
	double s = number(line, "end_s") - number(line, "start_s");

	if (!(s > t->longest_s))
		return;
	t->longest_s = s;
	t->longest_start_s = number(line, "start_s");
	json_decref(t->longest_began);
	t->longest_began = json_incref(json_object_get(line, "started"));
}

static void add_connection(struct soak_total *t, const json_t *line) {
	t->connections++;
	t->before += t->retransmissions;
	t->retransmissions = 0;
	if (!t->began)
		t->began = json_incref(json_object_get(line, "started"));
	json_decref(t->connection);
	t->connection = json_deep_copy(line);
}

int soak_total_add(struct soak_total *t, const json_t *line) {
	const char *kind = json_string_value(json_object_get(line, "kind"));
	double end = number(line, "end_s");
	int e = 0;

	if (!kind)
		return failure(-EBADMSG, EXIT_INTERNAL,
			       "a line of the soak says not of what kind it is; give another file");
	if (streq(kind, "connection"))
		add_connection(t, line);
	else if (streq(kind, "interval"))
		e = add_interval(t, line);
	else if (streq(kind, "stall"))
		add_stall(t, line);
	else if (streq(kind, "gap")) {
		t->gaps++;
		t->gap_s += end - number(line, "start_s");
	} else if (streq(kind, "latency") || streq(kind, "bandwidth"))
		/* what was stopped can go on */
		t->over = !json_is_true(json_object_get(json_object_get(line, "soak"), "stopped"));
	if (e < 0)
		return failure(e, e == -ENOMEM ? EXIT_HOST : EXIT_INTERNAL, "interval %llu of the soak %s",
			       (unsigned long long) t->intervals + 1,
			       e == -ENOMEM ? "finds no memory" : "is damaged; give another file");
	if (isfinite(end) && end > t->end_s && !streq(kind, "stall")) {
		t->end_s = end;
		json_decref(t->ended);
		t->ended = json_incref(json_object_get(line, "ended"));
	}
	return 0;
}

static json_t *latencies(const struct soak_total *t) {
	json_t *l = latency_json(t->histogram, t->half_round_trip);

	return l ? l : json_null();
}

static json_t *histogram_text(const struct soak_total *t) {
	_cleanup_free_ char *text = NULL;

	if (t->histogram->count == 0 || histogram_encode(t->histogram, &text) < 0)
		return json_null();
	return json_pack("{s:s, s:s, s:s}", "encoding", "hdr-v2-zlib-base64", "unit",
			 t->half_round_trip ? "ns_round_trip" : "ns", "data", text);
}

static json_t *bandwidth(const struct soak_total *t) {
	if (t->bytes == 0 || t->elapsed_s <= 0)
		return json_null();
	return json_pack("{s:f, s:o, s:s, s:o, s:f, s:I}", "gbit_s", (double) t->bytes * 8e-9 / t->elapsed_s,
			 "peak_gbit_s", number_or_null(t->peak_gbit), "peak_definition", "best_interval_0.1s",
			 "min_interval_gbit_s", number_or_null(t->least_gbit), "messages_per_s",
			 (double) t->messages / t->elapsed_s, "bytes", (json_int_t) t->bytes);
}

static json_t *cpu(const struct soak_total *t) {
	double gb = t->bytes ? (double) t->bytes / 1e9 : NAN;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "client_s", number_or_null(t->client_s), "server_s",
			 number_or_null(t->server_s), "client_system_s", number_or_null(t->client_system_s),
			 "server_system_s", number_or_null(t->server_system_s), "client_s_per_gb",
			 number_or_null(t->client_s / gb), "server_s_per_gb", number_or_null(t->server_s / gb));
}

/* Bytes and messages are whole numbers. */
static json_t *count_or_null(double x) {
	return isfinite(x) ? json_integer((json_int_t) x) : json_null();
}

static json_t *path(const struct soak_total *t) {
	if (!isfinite(t->claimed))
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "claimed_bytes", count_or_null(t->claimed), "client_sent_bytes",
			 count_or_null(t->sent), "client_received_bytes", count_or_null(t->received), "lost_bytes",
			 count_or_null(t->lost));
}

static json_t *tcp(const struct soak_total *t) {
	return t->tcp ? json_pack("{s:o, s:n, s:n}", "retransmissions", count_or_null(t->before + t->retransmissions),
				  "initial_rtt_us", "window_bytes") : json_null();
}

static json_t *stall(const struct soak_total *t, const struct job *job) {
	if (job->gap_ns > 0 || job->rate_unit != RATE_NONE || t->lossy)
		return json_null();
	return json_pack("{s:f, s:f, s:o}", "longest_s", t->longest_s, "start_s", t->longest_start_s, "began",
			 t->longest_began ? json_incref(t->longest_began) : json_null());
}

/*
 * The pace of the connection's params was that of no message yet. A day does not lack its pace for one interval,
 * which is behind once a stall lies at its end: only for a tenth of the time (pace_is_behind());
 * which intervals were, they say.
 */
static void put_rate(const struct soak_total *t, json_t *record) {
	json_t *rate = json_object_get(json_object_get(record, "params"), "rate");

	if (json_is_object(rate))
		(void) json_object_update_new(rate, json_pack("{s:o, s:b}", "skipped", count_or_null(t->skipped),
							      "overloaded", t->behind_s > t->elapsed_s / 10));
}

json_t *soak_total_record(const struct soak_total *t, const struct job *job, json_t *soak, json_t *error) {
	static const char *const of_a_line[] = { "connection_number", "boot_id", "epoch_ns", "uptime_s", "start_s" };
	json_t *record = t->connection ? json_deep_copy(t->connection) : json_pack("{s:s}", "schema", "perch.record/1");
	const char *status = json_is_null(error) ? "ok" : "error";

	for (size_t i = 0; i < ELEMENTSOF(of_a_line); i++)
		(void) json_object_del(record, of_a_line[i]);
	put_rate(t, record);
	(void) json_object_update_new(record,
				      json_pack("{s:s, s:o, s:o, s:o, s:o, s:[], s:o, s:o, s:o}", "kind",
						kind_name((int) job->kind), "started",
						t->began ? json_incref(t->began) : json_null(), "elapsed_s",
						number_or_null(t->elapsed_s > 0 ? t->elapsed_s : NAN), "latency_us",
						latencies(t), "bandwidth",
						job->kind == KIND_BANDWIDTH ? bandwidth(t) : json_null(), "intervals",
						"histogram", histogram_text(t), "cpu", cpu(t), "path", path(t)));
	(void) json_object_update_new(record, json_pack("{s:o, s:o, s:o, s:o, s:s, s:o}", "integrity", t->verified
							? json_pack("{s:I, s:I, s:O*}", "checked_bytes",
								    (json_int_t) t->checked_bytes, "bad_bytes",
								    (json_int_t) t->bad_bytes, "first_bad",
								    t->first_bad) : json_null(), "stall", stall(t, job),
							"tcp", tcp(t), "soak", soak, "status", status, "error", error));
	if (t->lossy)
		(void) json_object_set_new(record, "loss",
					   json_pack("{s:o, s:o}", "sent_messages", count_or_null(t->sent_messages),
						     "lost_messages", count_or_null(t->lost_messages)));
	return record;
}
