/* SPDX-License-Identifier: Apache-2.0 */
/* How slots and messages are dealt out to several queue pairs, and what the verbs backend makes of a peer's address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "backends/registry.h"
#include "base/message.h"

enum { MESSAGES = 2000 };

/* Both ends must come to the same: the message that is k-th in a channel is the one that was posted there k-th. */
static void check_dealing(uint32_t queue_pairs, uint32_t batch, uint32_t slots) {
	const struct job job = { .queue_pairs = queue_pairs, .batch = batch };
	uint64_t posted[32] = { 0 };

	for (uint64_t sequence = 0; sequence < MESSAGES; sequence++) {
		uint32_t channel = job_channel(&job, (uint32_t) (sequence % slots));

		assert_true(channel < queue_pairs);
		assert_int_equal(job_sequence(&job, channel, posted[channel]++), sequence);
	}
	/* Lists stay together, and all channels get their turn. */
	for (uint64_t sequence = 0; sequence + 1 < MESSAGES; sequence++) {
		uint32_t here = job_channel(&job, (uint32_t) (sequence % slots)),
			next = job_channel(&job, (uint32_t) ((sequence + 1) % slots));

		assert_int_equal(next, (sequence + 1) % batch ? here : (here + 1) % queue_pairs);
	}
}

static void test_messages_are_dealt_out(void **state) {
	(void) state;
	check_dealing(1, 1, 64);
	check_dealing(4, 1, 64);
	check_dealing(3, 1, 12);
	check_dealing(1, 16, 64);
	check_dealing(3, 5, 60);
	check_dealing(32, 2, 64);
}

#ifdef HAVE_VERBS
#include "backends/verbs/verbs.h"

static void test_slots(void **state) {
	struct job job;
	const struct backend *b = backend_find("verbs");

	(void) state;
	job_defaults(&job);
	job.kind = KIND_BANDWIDTH;
	job.sizes[0] = 1 << 20;
	job.n_sizes = 1;
	for (job.queue_pairs = 1; job.queue_pairs <= 7; job.queue_pairs++)
		for (job.batch = 1; job.batch <= 9; job.batch++)
			for (job.outstanding = job.batch; job.outstanding < 40; job.outstanding += 7)
				for (int op = 0; op < OP_MAX; op++) {
					uint32_t slots;

					job.op = (enum op) op;
					job.verify = job.outstanding % 2;
					slots = b->slots(&job);
					assert_int_equal(slots % (job.queue_pairs * job.batch), 0);
					assert_true(slots >= job_under_way(&job) * (op_takes_receive(job.op) ? 2 : 1));
				}
	job.kind = KIND_LATENCY;
	assert_int_equal(b->slots(&job), 2);
}

/* As much of an end as an address is made of. */
struct end {
	struct job job;
	struct ibv_mr mr;
	struct ibv_qp qps[3];
	struct verbs_queue queues[3];
	struct verbs_session session;
};

static void end_open(struct end *e) {
	memset(e, 0, sizeof(*e));
	job_defaults(&e->job);
	e->job.op = OP_WRITE;
	e->job.queue_pairs = ELEMENTSOF(e->queues);
	e->job.sizes[0] = 1000;
	e->job.n_sizes = 1;
	e->mr.rkey = 0x12345678;
	for (uint32_t i = 0; i < ELEMENTSOF(e->queues); i++) {
		e->qps[i].qp_num = 0xabcdef - i;
		e->queues[i].qp = e->qps + i;
	}
	e->session.job = &e->job;
	e->session.mr[0] = &e->mr;
	e->session.queues = e->queues;
	e->session.n_queues = ELEMENTSOF(e->queues);
	e->session.arena = (struct arena) { .tx = (uint8_t *) e, .rx = (uint8_t *) e + 2048, .length = 4096,
					    .n_regions = 1 };
	e->session.first_psn = 0xfffffe;
	e->session.queue_key = 77;
	e->session.device.port_attr.active_mtu = IBV_MTU_2048;
	e->session.device.port_attr.link_layer = IBV_LINK_LAYER_ETHERNET;
	e->session.device.port_attr.lid = 9;
	e->session.device.attr.max_qp_rd_atom = 16;
	e->session.device.attr.max_qp_init_rd_atom = 4;
	e->session.device.gid.raw[15] = 5;
}

static void test_an_address_arrives(void **state) {
	struct end server, client;
	struct address a;

	(void) state;
	end_open(&server);
	end_open(&client);
	client.session.device.port_attr.active_mtu = IBV_MTU_4096;
	assert_int_equal(verbs_address_write(&server.session, &a), 0);
	assert_int_equal(verbs_address_read(&client.session, &a), 0);
	assert_true(client.session.remote_key == 0x12345678 && client.session.remote_psn == 0xfffffe &&
		    client.session.remote_queue_key == 77);
	assert_true(client.session.remote_base == (uintptr_t) server.session.arena.rx &&
		    client.session.remote_lid == 9);
	assert_int_equal(client.session.remote_gid.raw[15], 5);
	assert_int_equal(client.session.path_mtu, 2048);
	assert_int_equal(client.session.read_depth, 4);
	for (uint32_t i = 0; i < ELEMENTSOF(client.queues); i++)
		assert_int_equal(client.queues[i].remote_number, 0xabcdef - i);
}

/* Key and place of the memory are told only where an operation needs them. */
static void test_a_send_lends_no_memory(void **state) {
	struct end server, client;
	struct address a;

	(void) state;
	end_open(&server);
	end_open(&client);
	server.job.op = client.job.op = OP_SEND;
	assert_int_equal(verbs_address_write(&server.session, &a), 0);
	assert_int_equal(verbs_address_read(&client.session, &a), 0);
	assert_true(client.session.remote_key == 0 && client.session.remote_base == 0);
}

static void refused(struct end *e, const struct address *a, enum exit_code code) {
	failure_reset();
	assert_true(verbs_address_read(&e->session, a) < 0);
	assert_int_equal(failure_code(), code);
	assert_true(failure_text()[0] != '\0');
}

static void test_bad_addresses_are_refused(void **state) {
	struct end server, client;
	struct address a, b;

	(void) state;
	end_open(&server);
	end_open(&client);
	assert_int_equal(verbs_address_write(&server.session, &a), 0);
	for (size_t length = 0; length <= a.length + 1; length++) {
		b = a;
		b.length = length;
		if (length != a.length)
			refused(&client, &b, EXIT_PEER);
	}
	b = a;
	b.bytes[0] ^= 1; /* magic */
	refused(&client, &b, EXIT_PEER);
	client.session.arena.length *= 2;
	refused(&client, &a, EXIT_PEER);
	assert_non_null(strstr(failure_text(), "the peer's buffers have 4096 bytes and ours 8192"));
	client.session.arena.length /= 2;
	client.session.device.port_attr.link_layer = IBV_LINK_LAYER_INFINIBAND;
	refused(&client, &a, EXIT_PEER);
	client.session.device.port_attr.link_layer = IBV_LINK_LAYER_ETHERNET;
	assert_int_equal(verbs_address_read(&client.session, &a), 0);
}

static void test_mtu_limits_name_the_end(void **state) {
	struct end server, client;
	struct address a;

	(void) state;
	end_open(&server);
	end_open(&client);
	assert_int_equal(verbs_address_write(&server.session, &a), 0);
	client.job.verbs.mtu = 1024;
	assert_int_equal(verbs_address_read(&client.session, &a), 0);
	assert_int_equal(client.session.path_mtu, 1024);
	client.job.verbs.mtu = 4096;
	refused(&client, &a, EXIT_HOST); /* its own port has 2048 */
	client.session.device.port_attr.active_mtu = IBV_MTU_4096;
	refused(&client, &a, EXIT_PEER); /* the other has */
	client.job.verbs.mtu = 0;
	client.job.sizes[0] = 3000;
	client.session.datagrams = true;
	refused(&client, &a, EXIT_PEER);
}
#endif

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_are_dealt_out),
#ifdef HAVE_VERBS
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_an_address_arrives),
		cmocka_unit_test(test_a_send_lends_no_memory),
		cmocka_unit_test(test_bad_addresses_are_refused),
		cmocka_unit_test(test_mtu_limits_name_the_end),
#endif
	};

	return cmocka_run_group_tests_name("channels", tests, NULL, NULL);
}
