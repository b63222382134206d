/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: a record names the queue pairs of both ends, and says whether data come in order.
 * Over the fake of libibverbs (fake_verbs.h): no proof of the verbs path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verbs_traffic.h"

/* Where memory is polled, the device is asked whether it writes the last byte last. */
static void test_a_record_says_whether_data_come_in_order(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	job.kind = KIND_LATENCY;
	job.outstanding = 1;
	for (int unordered = 0; unordered < 3; unordered++) {
		json_t *record, *said;

		fake.devices[0].out_of_order = unordered == 1;
		job.op = unordered == 2 ? OP_WRITE_IMM : OP_WRITE;
		open_pair(&job);
		record = described(ROLE_CLIENT);
		said = json_object_get(json_object_get(record, "params"), "data_in_order");
		assert_true(unordered == 2 ? !said : json_is_boolean(said) && json_is_true(said) == !unordered);
		json_decref(record);
		close_pair();
	}
}

static json_t *queue_pairs_of(const json_t *record, const char *end) {
	return json_object_get(json_object_get(record, "queue_pairs"), end);
}

/* Each end knows its own numbers, and the peer's as the peer does. */
static void test_a_record_names_the_queue_pairs_of_both_ends(void **state) {
	struct job job = verbs_job(OP_SEND);
	json_t *of_client, *of_server, *first, *second;

	(void) state;
	job.queue_pairs = 2;
	open_pair(&job);
	of_client = described(ROLE_CLIENT);
	of_server = described(ROLE_SERVER);
	assert_true(json_equal(queue_pairs_of(of_client, "server"), queue_pairs_of(of_server, "client")));
	assert_true(json_equal(queue_pairs_of(of_client, "client"), queue_pairs_of(of_server, "server")));
	assert_int_equal(json_array_size(queue_pairs_of(of_client, "client")), 2);
	first = json_array_get(queue_pairs_of(of_client, "client"), 0);
	second = json_array_get(queue_pairs_of(of_client, "client"), 1);
	assert_int_equal(json_integer_value(json_object_get(first, "number")) + 1,
			 json_integer_value(json_object_get(second, "number")));
	assert_int_equal((json_integer_value(json_object_get(first, "psn")) + 1) & PSN_MASK,
			 json_integer_value(json_object_get(second, "psn")));
	json_decref(of_client);
	json_decref(of_server);
	close_pair();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_record_says_whether_data_come_in_order, setup),
		cmocka_unit_test_setup(test_a_record_names_the_queue_pairs_of_both_ends, setup),
	};

	return cmocka_run_group_tests_name("verbs records, over a fake libibverbs", tests, NULL, NULL);
}
