/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: what a peer says of its provider and its devices is kept, and refused where it is not what a peer may say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "measure/exchange.h"
#include "pair.h"

static struct job job = {
	.kind = KIND_LATENCY,
	.backend = "null",
	.op = OP_SEND,
	.sizes = { 8 },
	.n_sizes = 1,
	.iterations = 1,
	.outstanding = 1,
	.queue_pairs = 1,
	.batch = 1,
	.cq_moderation = 1,
	.tx_memory = "host",
	.rx_memory = "host",
	.timeout_ns = NSEC_PER_SEC,
};

static void say(int fd, enum frame_type type, const char *text) {
	static uint8_t frame[CONTROL_FRAME_MAX];
	size_t n = frame_bytes(CONTROL_VERSION, type, text, strlen(text), NULL, false, 0, frame);

	assert_int_equal(send(fd, frame, n, MSG_NOSIGNAL), n);
}

static const char *placement = "{\"cpu\":\"1\",\"node\":0,\"memory_node\":0,\"unplaced\":null}";

/* A client that says `more` with its address, and is connected. *ret_simulated: what the run is then. */
static int hear(const char *device, const char *more, struct peer *ret, bool *ret_simulated) {
	static char text[CONTROL_FRAME_MAX / 2];
	struct pair p = pair_open();
	struct control c = { .fd = p.theirs, .server = true, .timeout_ns = NSEC_PER_SEC, .peer_name = "test" };
	static const struct sockaddr_storage local = { .ss_family = AF_INET };
	const struct open_arguments a = { .job = &job, .role = ROLE_SERVER, .local = &local, .wake_fd = -1,
					  .same_machine = true };
	struct run run = { 0 };
	int e;

	(void) snprintf(text, sizeof(text),
			"{\"address\":\"\",\"host\":\"h\",\"device\":\"%s\",\"shown\":\"\",\"can_notify\":true,"
			"\"placement\":%s%s}", device, placement, more);
	*ret = (struct peer) { 0 };
	failure_reset();
	assert_int_equal(run_open(&run, &a, &c), 0);
	say(p.ours, FRAME_ADDRESS, text);
	say(p.ours, FRAME_CONNECTED, "{}");
	e = exchange_addresses(&run, ret);
	*ret_simulated = run.session->simulated;
	run_close(&run);
	(void) close(p.theirs);
	(void) close(p.ours);
	return e;
}

static void test_provider(void **state) {
	struct peer peer;
	bool simulated;
	json_t *end;

	(void) state;
	assert_int_equal(hear("cxi0", ",\"environment\":{\"FI_CXI_A\":\"1\"},\"idc\":false,\"ll\":true", &peer,
			      &simulated), 0);
	end = peer.end;
	assert_string_equal(json_string_value(json_object_get(json_object_get(end, "environment"), "FI_CXI_A")), "1");
	assert_true(json_is_false(json_object_get(end, "idc")) && json_is_true(json_object_get(end, "ll")));
	assert_false(simulated);
	json_decref(end);

	/* An end without such a provider says nothing of it. */
	assert_int_equal(hear("eth0", "", &peer, &simulated), 0);
	assert_null(json_object_get(peer.end, "environment"));
	assert_null(json_object_get(peer.end, "idc"));
	json_decref(peer.end);
}

static void refused(const char *more) {
	struct peer peer;
	bool simulated;

	assert_int_equal(hear("cxi0", more, &peer, &simulated), -EBADMSG);
	assert_int_equal(failure_code(), EXIT_PEER);
	json_decref(peer.end);
}

static void test_hostile_environment(void **state) {
	static char text[8192];
	size_t n = 0;

	(void) state;
	refused(",\"environment\":[],\"idc\":true,\"ll\":true");
	refused(",\"environment\":\"FI_CXI_A=1\",\"idc\":true,\"ll\":true");
	refused(",\"environment\":{\"FI_CXI_A\":1},\"idc\":true,\"ll\":true");
	refused(",\"environment\":{\"FI_CXI_A\":{}},\"idc\":true,\"ll\":true");
	refused(",\"environment\":{},\"idc\":1,\"ll\":true");
	refused(",\"environment\":{},\"idc\":true");
	refused(",\"environment\":{}");
	(void) snprintf(text, sizeof(text), ",\"environment\":{\"A\":\"%0*d\"},\"idc\":true,\"ll\":true",
			ENVIRONMENT_VALUE_MAX, 0);
	refused(text);
	(void) snprintf(text, sizeof(text), ",\"environment\":{\"%0*d\":\"1\"},\"idc\":true,\"ll\":true",
			ENVIRONMENT_NAME_MAX, 0);
	refused(text);
	for (int i = 0; i <= ENVIRONMENT_VARIABLES_MAX; i++)
		n += (size_t) snprintf(text + n, sizeof(text) - n, "%s\"V%d\":\"\"", i ? "," : ",\"environment\":{", i);
	(void) snprintf(text + n, sizeof(text) - n, "},\"idc\":true,\"ll\":true");
	refused(text);
}

/* A place is said of every end. */
static void test_place(void **state) {
	const char *before = placement;
	struct peer peer;
	bool simulated;

	(void) state;
	assert_int_equal(hear("eth0", "", &peer, &simulated), 0);
	assert_int_equal(peer.placed.why, PLACED);
	assert_true(CPU_ISSET(1, &peer.placed.cpus));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(peer.end, "placement"), "node")), 0);
	json_decref(peer.end);
	placement = "null";
	refused("");
	placement = "{\"cpu\":\"1\"}";
	refused("");
	placement = before;
}

/* The figures are of both ends. */
static void test_simulated_peer(void **state) {
	static const struct {
		const char *device, *more;
		bool simulated;
	} cases[] = {
		{ "cxi0", ",\"gpu\":\"NVIDIA H100\"", false },
		{ "cxi0", ",\"gpu\":\"a sim_ulation\"", false },
		{ "sim_cxi0", "", true },
		{ "cxi0", ",\"gpu\":\"sim_cuda0\"", true },
		{ "cxi0", ",\"gpu\":\"NVIDIA H100, sim_rocm0\"", true },
	};
	struct peer peer;
	bool simulated;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		assert_int_equal(hear(cases[i].device, cases[i].more, &peer, &simulated), 0);
		assert_int_equal(simulated, cases[i].simulated);
		json_decref(peer.end);
	}
}

static bool agree(enum role role, enum op op, bool bidirectional, bool own, bool theirs) {
	struct job j = { .kind = bidirectional ? KIND_BANDWIDTH : KIND_LATENCY, .op = op,
			 .bidirectional = bidirectional };
	struct run r = { .job = &j, .role = role };
	json_t *end = json_pack("{s:b}", "idc", theirs);
	bool answer = exchange_agree(&r, end, "idc", own);

	json_decref(end);
	return answer;
}

static void test_agreement(void **state) {
	(void) state;
	/* A round trip has a send of each. */
	for (enum role role = ROLE_CLIENT; role <= ROLE_SERVER; role++) {
		assert_true(agree(role, OP_SEND, false, true, true));
		assert_false(agree(role, OP_SEND, false, true, false));
		assert_false(agree(role, OP_SEND, false, false, true));
		assert_false(agree(role, OP_WRITE, true, true, false));
	}
	/* The server of a write sends nothing. */
	assert_true(agree(ROLE_CLIENT, OP_WRITE, false, true, false));
	assert_false(agree(ROLE_CLIENT, OP_WRITE, false, false, true));
	assert_true(agree(ROLE_SERVER, OP_WRITE, false, false, true));
	assert_false(agree(ROLE_SERVER, OP_WRITE, false, true, false));
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_provider),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_hostile_environment),
		cmocka_unit_test(test_simulated_peer),
		cmocka_unit_test(test_agreement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
