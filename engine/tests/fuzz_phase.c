/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target of what an accepted client may say: its address, phases, and words in the middle of the traffic.
 * The job is a right one of the null backend, with --verify, so that checks are asked for;
 * whatever the client says, memory stays whole and the server's end comes back.
 */
#include <stdio.h>

#include "measure/exchange.h"
#include "pair.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct job job = {
	.kind = KIND_BANDWIDTH,
	.backend = "null",
	.op = OP_WRITE,
	.sizes = { 100 },
	.n_sizes = 1,
	.iterations = 3,
	.outstanding = 3,
	.queue_pairs = 1,
	.batch = 1,
	.cq_moderation = 1,
	.verify = true,
	.timeout_ns = NSEC_PER_SEC,
};
static struct run run;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
	static struct control nobody = { .fd = -1 };
	static const struct sockaddr_storage local = { .ss_family = AF_INET };
	const struct open_arguments a = { .job = &job, .role = ROLE_SERVER, .local = &local, .wake_fd = -1,
					  .same_machine = true };

	(void) argc;
	(void) argv;
	if (run_open(&run, &a, &nobody) < 0)
		abort();
	run.session->level = LEVEL_DELIVERY; /* else a wrong payload is looked at again for a second */
	return 0;
}

/* A number as JSON has it: small ones and the edges of 64 bits are as likely as any other. */
static int64_t number(const uint8_t *data) {
	static const int64_t edges[] = { 0, 1, 2, 3, 4, 100, 101, -1, INT64_MAX, INT64_MIN, INT64_MAX - 1, UINT32_MAX };
	int64_t v;

	if (data[0] % 2)
		return edges[data[1] % ELEMENTSOF(edges)];
	memcpy(&v, data, sizeof(v));
	return v;
}

enum { STEP = 20 }; /* bytes of input for one frame */

static void put_frame(int fd, const uint8_t *data) {
	enum frame_type type = (enum frame_type) (data[0] % FRAME_MAX);
	uint8_t frame[512];
	char text[256];
	int n;

	switch (data[1] % 5) {
	case 0:
		n = snprintf(text, sizeof(text), "{\"count\":%lld}", (long long) number(data + 2));
		break;
	case 1:
		n = snprintf(text, sizeof(text), "{\"first\":%lld,\"count\":%lld}", (long long) number(data + 2),
			     (long long) number(data + 10));
		break;
	case 2:
		n = snprintf(text, sizeof(text), "{\"size\":%lld,\"warmup\":%s,\"half_round_trip\":%s,\"count\":%lld}",
			     (long long) number(data + 2), data[18] & 1 ? "true" : "false",
			     data[18] & 2 ? "true" : "false", (long long) number(data + 10));
		break;
	case 3:
		n = snprintf(text, sizeof(text),
			     "{\"address\":\"%.*s\",\"host\":\"h\",\"device\":\"\",\"shown\":\"\",\"can_notify\":true,"
			     "\"driver\":\"%.*s\",\"vni\":%lld,\"placement\":{\"cpu\":\"%.*s\",\"node\":null,"
			     "\"memory_node\":%lld,\"unplaced\":null}}", data[2] % 5, "0aF!", data[3] % 4, "rxe",
			     (long long) number(data + 10), data[4] % 5, "1-3,", (long long) number(data + 10));
		break;
	default:
		n = snprintf(text, sizeof(text), "{}");
	}
	(void) !send(fd, frame, frame_bytes(CONTROL_VERSION, type, text, (size_t) n, NULL, false, 0, frame),
		     MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * As the worker does it; bandwidth both ways would send for ever where it is told to,
 * so that the rest is what is listened to.
 */
static void serve(struct control *c) {
	json_t *start;
	int e = 0;

	while (e == 0) {
		e = control_expect(c, FRAME_START, NSEC_PER_SEC, &start);
		if (e < 0)
			break;
		e = phase_from_json(&job, start, &run.phase);
		json_decref(start);
		if (e < 0)
			break;
		if (run.phase.size > run.arena.slot_bytes)
			abort();
		verify_prepare(&run);
		run_begin(&run);
		e = bandwidth_server(&run);
		if (e == 0)
			e = run_wait_peer(&run, FRAME_DONE);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct pair p = pair_without_ports();
	struct control c = { .fd = p.theirs, .server = true, .timeout_ns = NSEC_PER_SEC, .peer_name = "fuzz" };
	struct peer peer = { 0 };
	int e = 0;

	failure_reset();
	run.control = &c;
	for (size_t at = 1; at + STEP <= size; at += STEP)
		put_frame(p.ours, data + at);
	(void) shutdown(p.ours, SHUT_WR);
	if (size > 0 && data[0] & 1)
		e = exchange_addresses(&run, &peer);
	if (e == 0)
		serve(&c);
	json_decref(peer.end);
	(void) close(p.theirs);
	(void) close(p.ours);
	return 0;
}
