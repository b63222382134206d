/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target's side. Where a device serves one-sided operations by itself there is nothing to do but to listen;
 * elsewhere threads make progress, as many as the initiator has.
 *
 *     START {size, batch} -> STARTED, traffic, CHECK {lane, first} -> CHECKED, DONE -> RESULT {cpu, pairs}
 */
#include "base/message.h"
#include "transfer.h"

static int begin_phase(struct transfer *x, const json_t *start) {
	json_int_t size, batch;
	int e;

	e = json_unpack((json_t *) (uintptr_t) start, "{s:I, s:I!}", "size", &size, "batch", &batch);
	/* Only what the job has: the buffers have room for no more. */
	for (size_t i = 0; e == 0 && i < x->job.n_sizes; i++)
		for (size_t k = 0; k < x->job.n_batches; k++)
			if (size == (json_int_t) x->job.sizes[i] && batch == (json_int_t) x->job.batches[k]) {
				shape_of(&x->job, x->job.sizes[i], x->job.batches[k], &x->shape);
				return 0;
			}
	return failure(-EBADMSG, EXIT_PEER, "the peer asked for a phase that its job does not have; refused");
}

/* Sources of reads, and places of writes in which nothing stale may pass for new. */
static int prepare(struct lane *l) {
	lane_prepare(l);
	return l->job.verify ? transfer_ready_target(l) : 0;
}

static int answer_check(struct transfer *x, const json_t *payload) {
	json_int_t lane, first;
	int e;

	if (json_unpack((json_t *) (uintptr_t) payload, "{s:I, s:I!}", "lane", &lane, "first", &first) < 0 ||
	    lane < 0 || lane >= (json_int_t) x->n_lanes || first < 0 || !x->job.verify || x->job.op != OP_WRITE)
		return failure(-EPROTO, EXIT_PEER, "%s asked for an impossible check; refused", x->control->peer_name);
	e = transfer_check(x->lanes[lane], (uint64_t) first);
	return e < 0 ? e : control_send(x->control, FRAME_CHECKED, NULL);
}

static json_t *integrity_json(const struct transfer *x, uint32_t pair) {
	struct integrity all = { .located = false };

	for (uint32_t i = pair; i < x->n_lanes; i += x->n_pairs)
		integrity_add(&all, &x->lanes[i]->integrity);
	return json_pack("{s:I, s:I, s:b, s:I, s:I}", "checked_bytes", (json_int_t) all.checked_bytes, "bad_bytes",
			 (json_int_t) all.bad_bytes, "located", all.located, "first_message",
			 (json_int_t) all.first.message, "first_offset", (json_int_t) all.first.offset);
}

static int say_result(struct transfer *x, const struct cpu_time *cpu) {
	json_t *pairs = json_array();

	for (uint32_t i = 0; i < x->n_pairs; i++)
		(void) json_array_append_new(pairs, integrity_json(x, i));
	return control_send(x->control, FRAME_RESULT, json_pack("{s:f, s:f, s:o}", "process_s", cpu->process_s,
								"host_s", cpu->host_s, "pairs", pairs));
}

/*
 * Until the client says something; meanwhile a thread of ours may fail.
 * The client may be silent as long as it measures.
 */
static int hear(struct transfer *x, enum frame_type *ret_type, json_t **ret) {
	while (!control_pending(x->control)) {
		int e = atomic_load(&x->stop) ? transfer_why(x) : 0;

		if (e < 0)
			return e;
		control_wait(x->control, RUN_SLEEP_NS);
	}
	return control_receive(x->control, x->job.timeout_ns, ret_type, ret);
}

static int serve_phase(struct transfer *x, const json_t *start) {
	enum frame_type type = FRAME_START;
	json_t *payload = NULL;
	struct cpu_time cpu;
	int e;

	e = begin_phase(x, start);
	for (uint32_t i = 0; e == 0 && i < x->n_lanes; i++)
		e = prepare(x->lanes[i]);
	cpu_now(&cpu);
	if (e == 0)
		e = control_send(x->control, FRAME_STARTED, NULL);
	while (e == 0 && type != FRAME_DONE) {
		e = hear(x, &type, &payload);
		if (e == 0 && type == FRAME_CHECK)
			e = answer_check(x, payload);
		else if (e == 0 && type != FRAME_DONE)
			e = failure(-EPROTO, EXIT_PEER, "%s sent frame %d in the middle of transfers; refused",
				    x->control->peer_name, type);
		json_decref(payload);
		payload = NULL;
	}
	cpu = cpu_since(&cpu);
	return e < 0 ? e : say_result(x, &cpu);
}

static int serve_phases(struct transfer *x) {
	json_t *start;
	int e = 0;

	while (e == 0 && !control_has_ended(x->control, x->job.timeout_ns)) {
		e = control_expect(x->control, FRAME_START, x->job.timeout_ns, &start);
		if (e < 0)
			break;
		e = serve_phase(x, start);
		json_decref(start);
	}
	return e;
}

/*
 * A thread is lost in a library, which waits for a peer that hangs or is gone.
 * All that is to be said has been said by then.
 */
static void give_up(void *userdata) {
	(void) userdata;
	_exit(failure_text()[0] ? (int) failure_code() : EXIT_MEASURED);
}

int transfer_serve(struct control *c, const struct job *job, const struct open_arguments *arguments) {
	struct transfer x = { .job = *job, .done_fd = -1 };
	int e;

	e = transfer_open(&x, arguments, c);
	if (e == 0)
		e = transfer_watch(&x, give_up, NULL);
	if (e == 0 && !x.lanes[0]->run.session->passive)
		e = transfer_start(&x, transfer_attend);
	if (e == 0)
		e = serve_phases(&x);
	if (e < 0)
		control_send_error(c); /* before the data path closes: its loss would hide the reason */
	transfer_close(&x);
	return e;
}
