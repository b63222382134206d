/* SPDX-License-Identifier: Apache-2.0 */
/* Records: the key names are a contract (docs/definitions.md, reports/schema). What is not known is null, never 0. */
#include <math.h>
#include <stdio.h>

#include "bad_byte.h"
#include "measure/exchange.h"
#include "stats/figures.h"
#include "job/memory_kind.h"
#include "result.h"
#include "transfer_result.h"
#include "version.h"

static json_t *text_or_null(const char *text) {
	return text && text[0] ? json_string(text) : json_null();
}

static json_t *count_or_null(uint64_t n) {
	return n ? json_integer((json_int_t) n) : json_null();
}

static json_t *signed_or_null(int64_t n) {
	return n >= 0 ? json_integer(n) : json_null();
}

static void put(json_t *o, const char *key, json_t *value) {
	/* Fails only without memory; an object without the key is then refused by every reader. */
	(void) json_object_set_new(o, key, value);
}

char *record_text(const json_t *o) {
	/* 9 significant digits: more than any clock here resolves, and 0.1 stays 0.1. */
	return json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

void write_line(json_t *o) {
	_cleanup_free_ char *text = record_text(o);

	if (text)
		(void) printf("%s\n", text);
	(void) fflush(stdout); /* what is measured must not be lost with what comes later */
	json_decref(o);
}

static json_t *rate_json(const struct run *run) {
	const struct job *j = run->job;

	if (j->rate_unit == RATE_NONE)
		return json_null();
	return json_pack("{s:f, s:s, s:I, s:b}", "asked", j->rate_unit == RATE_BITS ? j->rate / 1e9 : j->rate, "unit",
			 j->rate_unit == RATE_BITS ? "Gb/s" : "messages/s", "skipped",
			 (json_int_t) run->outcome.skipped, "overloaded", run->outcome.overloaded);
}

static json_int_t given(uint32_t n) {
	return n ? (json_int_t) n : -1;
}

/* The options of verbs: as asked for, until describe() knows more. */
static void verbs_json(const struct result *r, json_t *ret) {
	const struct job *j = r->run->job;
	const struct verbs_options *v = &j->verbs;
	const struct session *s = r->run->session;
	/* What an unreliable connection, or a read, does not have is null: it had no influence. */
	const bool reliable = v->connection == CONNECTION_RC, pushes = j->op != OP_READ && !op_is_atomic(j->op);
	const struct {
		const char *key;
		json_int_t value;       /* negative: null, the device's choice is not known */
	} numbers[] = {
		{ "cq_moderation", j->cq_moderation },
		{ "traffic_class", job_lane(j, v->traffic_class) },
		{ "sl", job_lane(j, v->sl) },
		{ "gid_index", v->gid_index },
		{ "pkey", given(v->pkey) },
		{ "ib_port", given(v->ib_port) },
		{ "server_ib_port", given(v->server_ib_port) },
		{ "mtu_bytes", s && s->mtu ? (json_int_t) s->mtu : v->mtu ? (json_int_t) v->mtu : -1 },
		{ "retry", reliable ? (json_int_t) v->retry : -1 },
		{ "rnr_retry", reliable ? (json_int_t) v->rnr_retry : -1 },
		{ "timeout_exponent", reliable ? (json_int_t) v->timeout_exponent : -1 },
		/* 0 is a fact here: nothing is copied into work requests */
		{ "inline_bytes",
		  !pushes ? -1 : s ? (json_int_t) s->inline_bytes : v->inline_bytes },
	};
	const struct {
		const char *key;
		bool value;
	} flags[] = {
		{ "srq", v->srq },
		{ "rdma_cm", v->rdma_cm },
		{ "relaxed_ordering", job_relaxed_ordering(j) },
	};

	for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
		put(ret, numbers[i].key, signed_or_null(numbers[i].value));
	for (size_t i = 0; i < ELEMENTSOF(flags); i++)
		put(ret, flags[i].key, json_boolean(flags[i].value));
}

static void libfabric_json(const struct job *j, json_t *ret) {
	bool general = op_is_general_atomic(j->op);

	put(ret, "fabric_class", json_string(fabric_class_name((int) j->ofi.fabric_class)));
	put(ret, "atomic_op", general ? json_string(atomic_op_names[j->atomic_op]) : json_null());
	put(ret, "atomic_type", general ? json_string(atomic_type_names[j->atomic_type]) : json_null());
}

/* As they are in use where the endpoint is open, else as asked for. */
static void cxi_json(const struct result *r, json_t *ret) {
	const struct job *j = r->run->job;
	const struct slingshot *s = r->run->session ? r->run->session->slingshot : NULL;

	put(ret, "svc_id", signed_or_null(j->cxi.svc_id));
	put(ret, "server_svc_id", signed_or_null(j->cxi.server_svc_id));
	put(ret, "vni", signed_or_null(j->cxi.vni));
	put(ret, "idc", json_boolean(s ? exchange_agree(r->run, r->server, "idc", s->idc) : !j->cxi.no_idc));
	put(ret, "ll", json_boolean(s ? exchange_agree(r->run, r->server, "ll", s->ll) : !j->cxi.no_ll));
	put(ret, "rdzv", json_boolean(j->cxi.rdzv));
	put(ret, "rdzv_from_bytes", count_or_null(s ? s->rdzv_from : 0));
	put(ret, "unrestricted", json_boolean(s ? s->unrestricted : j->cxi.unrestricted));
	put(ret, "hrp", json_boolean(s && r->size <= s->hrp_up_to));
	put(ret, "keys", json_string(key_mode_name((int) (s ? s->keys : job_keys(j)))));
}

/* Of a batch of transfers: how it was laid out, cut and shared out. */
static void shape_json(const struct transfer_view *t, const struct job *j, json_t *ret) {
	put(ret, "threads", json_integer(t->threads));
	if (j->kind == KIND_RATE)
		return;
	put(ret, "batch", json_integer(t->shape.batch));
	put(ret, "devices", json_integer(t->pairs));
	put(ret, "consecutive", json_boolean(j->consecutive));
	put(ret, "session", json_boolean(!j->no_session));
	put(ret, "buffer_bytes", json_integer((json_int_t) t->buffer_bytes));
	put(ret, "stride_bytes", count_or_null(j->stride_bytes));
	put(ret, "chunk_bytes", t->shape.chunks > 1 ? json_integer((json_int_t) t->shape.chunk) : json_null());
	put(ret, "chunks", json_integer(t->shape.chunks));
	put(ret, "cross_rail", json_integer(j->cross_rail));
}

static json_t *transfer_json(const struct result *r) {
	const struct transfer_view *t = r->transfer;
	const struct outcome *o = &r->run->outcome;
	const struct session *s = r->run->session;

	return json_pack("{s:o, s:I, s:I, s:I, s:o, s:I, s:I, s:f, s:o, s:o}", "pair", signed_or_null(t->pair), "pairs",
			 (json_int_t) t->pairs, "batches", (json_int_t) t->batches, "completed",
			 (json_int_t) t->completed, "asked", count_or_null(t->asked), "batch_bytes",
			 (json_int_t) shape_bytes(&t->shape), "lists", (json_int_t) t->lists, "window_s",
			 (double) o->elapsed_ns / 1e9, "numa_node", signed_or_null(t->node), "post_api",
			 text_or_null(s ? s->post_api : NULL));
}

static json_t *message_rate_json(const struct result *r) {
	const struct session *s = r->run->session;

	if (r->messages == 0)
		return json_null();
	return json_pack("{s:f, s:I, s:o}", "mmsg_s", result_messages_s(r) / 1e6, "messages", (json_int_t) r->messages,
			 "post_api", text_or_null(s ? s->post_api : NULL));
}

json_t *params_json(const struct result *r, const struct backend_facts *facts) {
	const struct job *j = r->run->job;
	json_t *o = json_object();

	put(o, "size_bytes", json_integer((json_int_t) r->size));
	put(o, "iterations", count_or_null(j->iterations));
	put(o, "duration_s", j->duration_ns ? json_real((double) j->duration_ns / 1e9) : json_null());
	put(o, "warmup", j->warmup_ns ? json_null() : json_integer((json_int_t) j->warmup));
	put(o, "warmup_s", j->warmup_ns ? json_real((double) j->warmup_ns / 1e9) : json_null());
	put(o, "gap_us", json_real((double) j->gap_ns / 1e3));
	put(o, "queue_pairs", json_integer(j->queue_pairs));
	put(o, "outstanding", json_integer(j->outstanding));
	put(o, "batch", json_integer(j->batch));
	put(o, "threads", json_integer(1));
	put(o, "devices", json_integer(1));
	put(o, "inline_bytes", r->run->session ? count_or_null(r->run->session->inline_bytes) : json_null());
	put(o, "bidirectional", json_boolean(j->bidirectional));
	put(o, "completion", json_string(completion_mode_name((int) j->completion)));
	put(o, "memory", json_string(streq(j->tx_memory, j->rx_memory) ? j->tx_memory : "mixed"));
	put(o, "tx_memory", json_string(j->tx_memory));
	put(o, "rx_memory", json_string(j->rx_memory));
	put(o, "huge", json_integer((json_int_t) job_huge(j)));
	put(o, "footprint_bytes", count_or_null(j->footprint));
	put(o, "bounce", json_boolean(j->bounce));
	if (job_uses_gpu(j))
		put(o, "gpu_path",
		    text_or_null(j->bounce ? "bounce" : r->run->session ? r->run->session->gpu_path : NULL));
	put(o, "verify", json_boolean(j->verify));
	put(o, "clock", json_string(j->clock == CLOCK_KIND_CYCLES ? "cycles" : "monotonic"));
	put(o, "rate", rate_json(r->run));
	if (r->transfer)
		shape_json(r->transfer, j, o);
	if (backend_is(facts, BACKEND_VERBS))
		verbs_json(r, o);
	if (backend_is(facts, BACKEND_OFI) || backend_is(facts, BACKEND_CXI))
		libfabric_json(j, o);
	if (backend_is(facts, BACKEND_CXI))
		cxi_json(r, o);
	return o;
}

static json_t *link_json(const struct result *r) {
	const struct session *s = r->run->session;
	double rate = result_link_gbit_s(r);

	return json_pack("{s:o, s:o, s:o, s:n}", "rate_gbit_s", rate > 0 ? json_real(rate) : json_null(), "mtu_bytes",
			 count_or_null(s ? s->mtu : 0), "layer", text_or_null(s ? s->layer : NULL), "hop_class");
}

static json_t *end_json(const struct result *r, const char *gpu) {
	const struct run *run = r->run;
	const struct session *s = run->session;
	const char *devices = r->transfer ? r->transfer->client_device : NULL; /* several, which have no one address */
	json_t *o = json_pack("{s:o, s:o, s:o}", "host", text_or_null(r->client_host), "device",
			      text_or_null(devices ? devices : s ? s->device : NULL), "address",
			      text_or_null(s && !devices ? s->address : NULL));

	if (s)
		put(o, "placement", placed_to_json(&run->placed));
	if (s && s->driver[0])
		put(o, "driver", json_string(s->driver));
	if (s && s->slingshot) {
		put(o, "svc_id", signed_or_null(s->slingshot->svc_id));
		put(o, "vni", signed_or_null(s->slingshot->vni));
	}
	if (gpu[0])
		put(o, "gpu", json_string(gpu));
	return o;
}

/* Tools define peaks differently; NULL: the kind has none. */
static const char *peak_definition(enum kind kind) {
	return kind == KIND_RATE ? NULL : kind == KIND_TRANSFER ? "fastest_batch" : "best_interval_0.1s";
}

static json_t *bandwidth_json(const struct result *r) {
	const struct outcome *o = &r->run->outcome;
	const enum kind kind = r->run->job->kind;

	if (kind == KIND_LATENCY || r->bytes == 0 || o->elapsed_ns == 0)
		return json_null();
	return json_pack("{s:f, s:o, s:o, s:o, s:f, s:I}", "gbit_s", result_gbit_s(r), "peak_gbit_s",
			 number_or_null(o->peak_bytes_per_s * 8e-9), "peak_definition",
			 text_or_null(peak_definition(kind)), "min_interval_gbit_s",
			 number_or_null(o->min_bytes_per_s * 8e-9), "messages_per_s", result_messages_s(r),
			 "bytes", (json_int_t) r->bytes);
}

static json_t *histogram_json(const struct result *r) {
	_cleanup_free_ char *text = NULL;

	if (!r->run->total || r->run->total->count == 0 || histogram_encode(r->run->total, &text) < 0)
		return json_null();
	return json_pack("{s:s, s:s, s:s}", "encoding", "hdr-v2-zlib-base64", "unit",
			 r->run->phase.half_round_trip ? "ns_round_trip" : "ns", "data", text);
}

static json_t *cpu_json(const struct result *r) {
	const struct cpu_time *c = &r->run->outcome.cpu, *s = &r->server_cpu;
	double gb = (double) r->bytes / 1e9;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "client_s", number_or_null(c->process_s), "server_s",
			 number_or_null(s->process_s), "client_system_s", number_or_null(c->host_s), "server_system_s",
			 number_or_null(s->host_s), "client_s_per_gb", number_or_null(gb > 0 ? c->process_s / gb : -1),
			 "server_s_per_gb", number_or_null(gb > 0 ? s->process_s / gb : -1));
}

/* What this size put on the wire, for the device's own counters to be held against. */
static json_t *path_json(const struct result *r) {
	const struct path_claim *p = &r->path;
	const json_int_t sent = (json_int_t) p->sent_bytes, received = (json_int_t) p->received_bytes;

	if (!p->known)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:o}", "claimed_bytes", sent + received, "client_sent_bytes", sent,
			 "client_received_bytes", received, "lost_bytes",
			 r->loss_unknown ? json_null() : json_integer((json_int_t) p->lost_bytes));
}

json_t *time_json(const struct timespec *t) {
	char text[40], date[24];
	struct tm tm;

	(void) gmtime_r(&t->tv_sec, &tm);
	(void) strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	(void) snprintf(text, sizeof(text), "%s.%03ldZ", date, t->tv_nsec / 1000000);
	return json_string(text);
}

/* Where a pause was asked for, or losses are waited for, standing still says nothing. */
static json_t *stall_json(const struct result *r) {
	const struct session *s = r->run->session;
	const struct job *j = r->run->job;
	const struct outcome *o = &r->run->outcome;
	uint64_t ns = (uint64_t) r->started.tv_nsec + o->stall_start_ns;
	struct timespec began = { .tv_sec = r->started.tv_sec + (time_t) (ns / NSEC_PER_SEC),
				  .tv_nsec = (long) (ns % NSEC_PER_SEC) };

	/* Of transfers nobody looks for it: the threads only say that they go on. */
	if (r->transfer || j->gap_ns > 0 || j->rate_unit != RATE_NONE || (s && s->lossy) || o->elapsed_ns == 0)
		return json_null();
	return json_pack("{s:f, s:f, s:o}", "longest_s", (double) o->stall_ns / 1e9, "start_s",
			 (double) o->stall_start_ns / 1e9, "began", o->stall_ns ? time_json(&began) : json_null());
}

static json_t *error_json(const struct result *r) {
	if (r->code == EXIT_MEASURED)
		return json_null();
	return json_pack("{s:i, s:s, s:b}", "code", (int) r->code, "message", r->message, "traffic", r->run->traffic);
}

static void write_samples(const struct run *run) {
	double us = run->phase.half_round_trip ? 0.5e-3 : 1e-3;

	for (uint64_t i = 0; run->outcome.samples && i < run->outcome.messages; i++)
		write_line(json_pack("{s:s, s:I, s:I, s:f}", "kind", "sample", "size_bytes",
				     (json_int_t) run->phase.size, "number", (json_int_t) i, "latency_us",
				     (double) run->outcome.samples[i] * us));
}

const char *definition_text(const struct job *job, bool half_round_trip) {
	switch (job->kind) {
	case KIND_TRANSFER:
		return "batch_completion";
	case KIND_RATE:
		return "initiator_completion";
	case KIND_LATENCY:
		return half_round_trip ? "half_round_trip" : "completion";
	default:
		return op_takes_receive(job->op) ? "receiver_acknowledged" : "initiator_completion";
	}
}

json_t *record_json(const struct result *r) {
	const struct run *run = r->run;
	const struct session *s = run->session;
	const struct job *j = run->job;
	const bool latency = j->kind == KIND_LATENCY || j->kind == KIND_TRANSFER;
	const bool sum = j->kind == KIND_TRANSFER && r->transfer && r->transfer->pair < 0;
	char gpu[160];
	json_t *o = json_object(), *l = run->total ? latency_json(run->total, run->phase.half_round_trip) : NULL;

	arena_gpu_name(&run->arena, gpu, sizeof(gpu));
	put(o, "schema", json_string("perch.record/1"));
	put(o, "tool", json_pack("{s:s, s:s}", "name", "perch", "version", PERCH_VERSION));
	put(o, "backend", json_string(j->backend));
	put(o, "provider", text_or_null(s && s->provider[0] ? s->provider : j->provider));
	if (s && s->simulated)
		put(o, "simulated", json_true());
	if (s && s->slingshot)
		put(o, "environment", json_incref(s->slingshot->environment));
	put(o, "op", json_string(op_name((int) j->op)));
	put(o, "kind", json_string(sum ? "sum" : kind_name((int) j->kind)));
	put(o, "definition", json_string(definition_text(j, run->phase.half_round_trip)));
	put(o, "completion_level", s && s->level != LEVEL_NONE ? json_string(level_name((int) s->level)) : json_null());
	put(o, "connection", text_or_null(s ? s->connection : NULL));
	put(o, "client", end_json(r, gpu));
	put(o, "server", r->server ? json_incref(r->server) : json_null());
	put(o, "link", link_json(r));
	put(o, "params", params_json(r, run->backend->facts));
	put(o, "started", time_json(&r->started));
	put(o, "elapsed_s", json_real((double) run->outcome.elapsed_ns / 1e9));
	put(o, "latency_us", latency && l ? l : json_null());
	put(o, "bandwidth", bandwidth_json(r));
	put(o, "intervals", run->outcome.intervals ? json_incref(run->outcome.intervals) : json_array());
	put(o, "histogram", latency ? histogram_json(r) : json_null());
	put(o, "cpu", cpu_json(r));
	put(o, "path", path_json(r));
	put(o, "integrity", j->verify
	    ? json_pack("{s:I, s:I, s:o*}", "checked_bytes", (json_int_t) r->integrity.checked_bytes, "bad_bytes",
			(json_int_t) r->integrity.bad_bytes, "first_bad", bad_byte_json(&r->integrity)) : json_null());
	if (j->kind == KIND_TRANSFER)
		put(o, "transfer", transfer_json(r));
	if (j->kind == KIND_RATE)
		put(o, "message_rate", message_rate_json(r));
	if (s && s->lossy)
		put(o, "loss", json_pack("{s:I, s:o}", "sent_messages", (json_int_t) r->sent, "lost_messages",
					   r->loss_unknown ? json_null() : json_integer((json_int_t) r->lost)));
	put(o, "stall", stall_json(r));
	put(o, "tcp", json_null());
	put(o, "status", json_string(r->code == EXIT_MEASURED ? "ok" : "error"));
	put(o, "error", error_json(r));
	if (s && run->backend->describe)
		run->backend->describe(run->session, o);
	return o;
}

void write_json_result(const struct result *r) {
	write_samples(r->run);
	write_line(record_json(r));
}

void write_json_interval(const struct run *r, const json_t *interval) {
	json_t *o = json_pack("{s:s, s:I}", "kind", "interval", "size_bytes", (json_int_t) r->phase.size);

	(void) json_object_update(o, (json_t *) (uintptr_t) interval);
	write_line(o);
}
