/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a soak (docs/soak.md). An interval has the keys of a record that can differ between intervals;
 * its connection has the rest.
 */
#include "write_soak.h"

#include "measure/exchange.h"

static json_t *line(const struct soak *s, const char *kind) {
	return json_pack("{s:s, s:s, s:I}", "schema", "perch.record/1", "kind", kind, "connection_number",
			 (json_int_t) s->connection);
}

/* Moved from one to the other, in this order. */
static void take(json_t *to, const json_t *from, const char *const *keys, size_t n) {
	for (size_t i = 0; i < n; i++) {
		json_t *value = json_object_get(from, keys[i]);

		if (value)
			(void) json_object_set(to, keys[i], value);
	}
}

static json_t *wall(uint64_t monotonic) {
	struct timespec t = clock_wall_at(monotonic);

	return time_json(&t);
}

void soak_say_connection(const struct soak *s, const struct result *r) {
	static const char *const keys[] = { "tool", "backend", "provider", "simulated", "environment", "op",
					    "definition", "completion_level", "connection", "client", "server", "link",
					    "params" };
	json_t *record = record_json(r), *o = line(s, "connection");
	char boot[BOOT_ID_MAX];
	uint64_t now = s->begins ? (uint64_t) s->epoch_ns : monotonic_ns();
	double uptime_s = host_uptime_s();

	host_boot_id(boot);
	(void) json_object_update_new(o, json_pack("{s:s, s:I, s:o, s:f, s:o}", "boot_id", boot, "epoch_ns",
						   (json_int_t) s->epoch_ns, "uptime_s",
						   uptime_s >= 0 ? json_real(uptime_s) : json_null(), "start_s",
						   soak_seconds(s, now), "started", wall(now)));
	take(o, record, keys, ELEMENTSOF(keys));
	json_decref(record);
	write_line(o);
}

void soak_say_stall(const struct soak *s, const struct stall *stall) {
	json_t *o = line(s, "stall");

	(void) json_object_update_new(o, json_pack("{s:f, s:f, s:o, s:o, s:I}", "start_s",
						   soak_seconds(s, stall->start_ns), "end_s",
						   soak_seconds(s, stall->end_ns), "started", wall(stall->start_ns),
						   "ended", wall(stall->end_ns), "messages",
						   (json_int_t) stall->messages));
	write_line(o);
}

static json_t *known(int64_t n) {
	return n >= 0 ? json_integer(n) : json_null();
}

/* When it was found, as all times of a soak are told. */
static void put_bad_byte(const struct soak *s, const struct result *r, const json_t *record) {
	const struct integrity *i = &r->integrity;

	if (i->located && i->first.found_ns)
		(void) json_object_set_new(json_object_get(json_object_get(record, "integrity"), "first_bad"),
					   "start_s", json_real(soak_seconds(s, i->first.found_ns)));
}

void soak_say_interval(const struct soak *s, const struct result *r) {
	static const char *const keys[] = { "latency_us", "bandwidth", "histogram", "cpu", "path", "integrity", "tcp",
					    "loss", "status", "error" };
	const struct outcome *o = &r->run->outcome;
	json_t *record = record_json(r), *i = line(s, "interval");
	json_t *rate = json_object_get(json_object_get(record, "params"), "rate");
	struct footprint own = footprint_now();

	for (size_t k = 0; k < MIN(o->n_stalls, (uint64_t) RUN_STALLS_MAX); k++)
		soak_say_stall(s, o->stalls + k);
	(void) json_object_update_new(i,
				      json_pack("{s:f, s:f, s:O, s:o, s:O, s:I, s:I}", "start_s",
						soak_seconds(s, r->run->begin_ns), "end_s", soak_seconds(s, o->end_ns),
						"started", json_object_get(record, "started"), "ended",
						time_json(&o->ended), "elapsed_s", json_object_get(record, "elapsed_s"),
						"messages", (json_int_t) r->messages, "bytes", (json_int_t) r->bytes));
	put_bad_byte(s, r, record);
	take(i, record, keys, ELEMENTSOF(keys));
	(void) json_object_set(i, "rate", rate);
	(void) json_object_set_new(i, "stalls", json_pack("{s:I, s:f}", "count", (json_int_t) o->n_stalls, "total_s",
							  (double) o->stalled_ns / 1e9));
	(void) json_object_set_new(i, "memory", json_pack("{s:o, s:o}", "client_bytes", known(own.resident_bytes),
							  "server_bytes", known(r->server_footprint.resident_bytes)));
	(void) json_object_set_new(i, "handles", json_pack("{s:o, s:o}", "client", known(own.handles), "server",
							   known(r->server_footprint.handles)));
	json_decref(record);
	write_line(i);
}

void soak_say_lost(const char *why, int code) {
	write_line(json_pack("{s:s, s:s, s:i}", "kind", "lost", "reason", why, "code", code));
}

void soak_say_over(void) {
	write_line(json_pack("{s:s}", "kind", "over"));
}
