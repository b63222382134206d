/* SPDX-License-Identifier: Apache-2.0 */
#include "result.h"

#include "transfer_result.h"

double result_gbit_s(const struct result *r) {
	uint64_t ns = r->run->outcome.elapsed_ns;

	return ns ? (double) r->bytes * 8 / (double) ns : 0; /* bits a nanosecond are Gb/s */
}

double result_messages_s(const struct result *r) {
	uint64_t ns = r->run->outcome.elapsed_ns;

	return ns ? (double) r->messages * 1e9 / (double) ns : 0;
}

double result_link_gbit_s(const struct result *r) {
	const struct session *s = r->run->session;

	return r->transfer ? r->transfer->rate_gbit_s : s ? s->rate_gbit_s : 0;
}

double result_link_percent(const struct result *r) {
	double rate = result_link_gbit_s(r) * (r->run->job->bidirectional ? 2 : 1);

	return rate > 0 ? 100 * result_gbit_s(r) / rate : -1;
}

double result_p99_us(const struct result *r) {
	const struct histogram *h = r->run->total;

	if (r->run->job->kind == KIND_BANDWIDTH || !histogram_supports(h, 0.99))
		return -1;
	return (double) histogram_quantile(h, 0.99) / 1e3 / (r->run->phase.half_round_trip ? 2 : 1);
}

/* Which way the payload of one side's own operations goes: reads fetch it, atomics carry a word each way. */
static void claim(struct path_claim *p, enum op op, uint64_t bytes, bool from_client) {
	bool leaves = op != OP_READ, comes = op == OP_READ || op_is_atomic(op);

	if (from_client ? leaves : comes)
		p->sent_bytes += bytes;
	if (from_client ? comes : leaves)
		p->received_bytes += bytes;
}

void result_claim(struct result *r, uint64_t theirs) {
	const struct run *run = r->run;
	const struct job *j = run->job;

	if (run->backend->facts->flags & BACKEND_SOLO)
		return;
	claim(&r->path, j->op, run->outcome.messages * r->size, true);
	if (run->phase.half_round_trip)
		claim(&r->path, j->op, run->outcome.messages * r->size, false); /* each was answered by another */
	else if (j->bidirectional) /* what took a receive was counted where it came, and some may have been lost */
		claim(&r->path, j->op, (op_takes_receive(j->op) ? run->outcome.received : theirs) * r->size, false);
	r->path.known = true;
}
