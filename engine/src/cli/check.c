/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <stdio.h>

#include "job/backend_facts.h"
#include "base/message.h"
#include "output/result.h"
#include "output/transfer_result.h"
#include "version.h"

static void put(json_t *o, const char *key, json_t *value) {
	(void) json_object_set_new(o, key, value);
}

static json_t *seconds(uint64_t ns) {
	return ns ? json_real((double) ns / 1e9) : json_null();
}

static bool is_transfer(const struct options *o) {
	return o->job.kind == KIND_TRANSFER;
}

/* The params of a record that does not exist yet: of one size, and of one batch where the job has them. */
static json_t *params_of(const struct options *o, uint64_t size, uint32_t batch) {
	const struct job *j = &o->job;
	struct run run = { .job = j, .role = ROLE_CLIENT };
	struct transfer_view view = { .pairs = job_pairs(j), .threads = j->threads };
	struct result r = { .run = &run, .size = size, .transfer = job_has_lanes(j) ? &view : NULL };

	if (r.transfer) {
		view.buffer_bytes = job_buffer(j);
		shape_of(j, size, batch, &view.shape);
	}
	return params_json(&r, backend_facts_of(j->backend));
}

/* Removes what only a session can tell: what the device, the provider or the peer chooses unless it was asked for. */
static void remove_open(const struct job *j, json_t *params) {
	const struct {
		const char *key;
		bool settled;
	} keys[] = {
		{ "inline_bytes", j->verbs.inline_bytes >= 0 },
		{ "gpu_path", j->bounce },
		{ "gid_index", j->verbs.gid_index >= 0 },
		{ "pkey", false },      /* a port may be a full or a limited member */
		{ "ib_port", j->verbs.ib_port > 0 },
		{ "server_ib_port", j->verbs.server_ib_port > 0 },
		/* a connection manager settles the path MTU by itself */
		{ "mtu_bytes", j->verbs.mtu > 0 && !j->verbs.rdma_cm },
		{ "sl", job_lane(j, j->verbs.sl) >= 0 },
		{ "traffic_class", job_lane(j, j->verbs.traffic_class) >= 0 },
		{ "idc", j->cxi.no_idc },
		{ "ll", j->cxi.no_ll },
		{ "hrp", j->cxi.no_hrp },
		{ "unrestricted", j->cxi.unrestricted },
		{ "rdzv_from_bytes", !j->cxi.rdzv },
	};
	json_t *rate = json_object_get(params, "rate");

	for (size_t i = 0; i < ELEMENTSOF(keys); i++)
		if (!keys[i].settled)
			(void) json_object_del(params, keys[i].key);
	if (json_is_object(rate)) {
		(void) json_object_del(rate, "skipped");
		(void) json_object_del(rate, "overloaded");
	}
}

/* Of params, what differs from line to line; the rest is the job's. */
static const char *const of_line[] = { "size_bytes", "batch", "chunk_bytes", "chunks" };

static size_t n_of_line(const struct options *o) {
	return is_transfer(o) ? ELEMENTSOF(of_line) : 1;
}

static json_t *job_params(const struct options *o) {
	const struct job *j = &o->job;
	json_t *params = params_of(o, j->sizes[0], j->batches[0]), *sizes = json_array(), *batches = json_array();

	remove_open(j, params);
	for (size_t i = 0; i < n_of_line(o); i++)
		(void) json_object_del(params, of_line[i]);
	for (size_t i = 0; i < j->n_sizes; i++)
		(void) json_array_append_new(sizes, json_integer((json_int_t) j->sizes[i]));
	for (size_t i = 0; i < j->n_batches; i++)
		(void) json_array_append_new(batches, json_integer(j->batches[i]));
	put(params, "sizes", sizes);
	if (is_transfer(o))
		put(params, "batches", json_incref(batches));
	json_decref(batches);
	return params;
}

/* One end, as far as the command names it. */
static json_t *end_json(const char *device, int32_t svc_id, int32_t vni) {
	json_t *end = json_object();

	if (device[0])
		put(end, "device", json_string(device));
	if (svc_id >= 0)
		put(end, "svc_id", json_integer(svc_id));
	if (vni >= 0)
		put(end, "vni", json_integer(vni));
	return end;
}

static void put_ends(json_t *o, const struct job *j) {
	put(o, "client", end_json(j->device, j->cxi.svc_id, j->cxi.vni));
	put(o, "server", end_json(j->server_device, j->cxi.server_svc_id, j->cxi.vni));
}

static void append_name(char *list, const char *name) {
	size_t n = strlen(list);

	(void) snprintf(list + n, JOB_DEVICES_TEXT - n, "%s%s", n ? "," : "", name);
}

/* Of all pairs together, in their order, as the record of the sum names them. */
static void put_ends_of_all(json_t *o, const struct job *j) {
	char client[JOB_DEVICES_TEXT] = "", server[JOB_DEVICES_TEXT] = "";
	struct job lane;

	for (uint32_t pair = 0; pair < job_pairs(j); pair++) {
		job_for_lane(j, pair, &lane);
		append_name(client, lane.device);
		append_name(server, lane.server_device);
	}
	put(o, "client", end_json(client, j->cxi.svc_id, j->cxi.vni));
	put(o, "server", end_json(server, j->cxi.server_svc_id, j->cxi.vni));
}

/* A line of a transfer; pair -1: the sum of all. */
static json_t *transfer_line(const struct job *j, const json_t *params, uint32_t batch, int pair) {
	uint32_t lanes = pair < 0 ? job_lanes(j) : job_lanes(j) / job_pairs(j);
	uint64_t asked = j->iterations * lanes * batch;
	json_t *line = json_pack("{s:s}", "kind", pair < 0 ? "sum" : kind_name((int) j->kind));
	struct job lane;

	for (size_t i = 0; i < ELEMENTSOF(of_line); i++)
		put(line, of_line[i], json_incref(json_object_get(params, of_line[i])));
	put(line, "pair", pair < 0 ? json_null() : json_integer(pair));
	put(line, "asked", asked ? json_integer((json_int_t) asked) : json_null());
	if (pair >= 0) {
		job_for_lane(j, (uint32_t) pair, &lane);
		put_ends(line, &lane);
	}
	return line;
}

static json_t *transfer_lines(const struct options *o) {
	const struct job *j = &o->job;
	json_t *lines = json_array();

	for (size_t i = 0; i < j->n_sizes; i++)
		for (size_t k = 0; k < j->n_batches; k++) {
			json_t *params = params_of(o, j->sizes[i], j->batches[k]);

			for (int pair = 0; pair < (int) job_pairs(j); pair++)
				(void) json_array_append_new(lines, transfer_line(j, params, j->batches[k], pair));
			(void) json_array_append_new(lines, transfer_line(j, params, j->batches[k], -1));
			json_decref(params);
		}
	return lines;
}

/* Every result that the command owes, in order. Lines of intervals and samples come besides. */
static json_t *expect_json(const struct options *o) {
	const struct job *j = &o->job;
	json_t *lines;

	if (is_transfer(o))
		return transfer_lines(o);
	lines = json_array();
	for (size_t i = 0; i < j->n_sizes; i++)
		(void) json_array_append_new(lines, json_pack("{s:s, s:I}", "kind", kind_name((int) j->kind),
							      "size_bytes", (json_int_t) j->sizes[i]));
	return lines;
}

/* The limits that the command line gives. */
static json_t *limits_json(const struct options *o) {
	json_t *limits = json_object();

	if (o->max_p99_us > 0)
		put(limits, "max_p99_us", json_real(o->max_p99_us));
	if (o->min_gbit > 0)
		put(limits, "min_gbit_s", json_real(o->min_gbit));
	return limits;
}

static json_t *soak_json(const struct options *o) {
	if (!o->soak_file[0])
		return json_null();
	return json_pack("{s:o, s:o}", "stall_s", seconds(o->stall_ns), "reconnect_s", seconds(o->reconnect_ns));
}

/*
 * What the command says beside its params: open where a provider may be chosen,
 * or may tell the target of a write, or may not.
 */
static void put_identity(json_t *o, const struct job *j) {
	enum definition definition = j->kind == KIND_LATENCY ? job_definition(j) : DEFINITION_COMPLETION;

	put(o, "backend", json_string(j->backend));
	if (j->provider[0])
		put(o, "provider", json_string(j->provider));
	put(o, "op", json_string(op_name((int) j->op)));
	put(o, "kind", json_string(kind_name((int) j->kind)));
	if (definition != DEFINITION_AUTO)
		put(o, "definition", json_string(definition_text(j, definition == DEFINITION_HALF_ROUND_TRIP)));
	if (backend_is(backend_facts_of(j->backend), BACKEND_VERBS))
		put(o, "connection", json_string(connection_name((int) j->verbs.connection)));
}

/* As it is asked; null: the default, or the server's own. */
static json_t *place_json(const char *text) {
	return text[0] ? json_string(text) : json_null();
}

json_t *check_json(const struct options *o) {
	const struct job *j = &o->job;
	json_t *check = json_pack("{s:s, s:{s:s, s:s}, s:s}", "schema", "perch.check/1", "tool", "name", "perch",
				  "version", PERCH_VERSION, "subcommand", command_name((int) o->checked));

	put_identity(check, j);
	put(check, "params", job_params(o));
	put(check, "timeout_s", seconds(j->timeout_ns));
	put(check, "interval_s", seconds(j->interval_ns));
	put(check, "barrier", json_boolean(j->barrier));
	put(check, "report_all", json_boolean(j->report_all));
	put(check, "cpu", place_json(j->cpu));
	put(check, "numa", place_json(j->numa));
	put(check, "server_cpu", place_json(j->server_cpu));
	put(check, "server_numa", place_json(j->server_numa));
	put(check, "rails", place_json(j->rails));
	put(check, "server_rails", place_json(j->server_rails));
	put(check, "slot", place_json(j->slot));
	put(check, "server_slot", place_json(j->server_slot));
	put(check, "limits", limits_json(o));
	put(check, "soak", soak_json(o));
	if (job_has_lanes(j))
		put_ends_of_all(check, j);
	else
		put_ends(check, j);
	put(check, "expect", expect_json(o));
	return check;
}

int command_check(const struct options *o) {
	if (options_validate(o) < 0)
		return (int) failure_code();
	write_line(check_json(o));
	return EXIT_MEASURED;
}
