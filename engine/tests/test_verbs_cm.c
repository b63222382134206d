/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: with --rdma-cm, the service level and traffic class that the connection manager found stay, unless an option
 * says otherwise; the record has those in force. Over fakes of libibverbs and librdmacm: no proof of the verbs path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_verbs_internal.h"
#include "verbs_traffic.h"

enum { FOUND_SL = 3, FOUND_CLASS = 106 };

static int setup_manager(void **state) {
	(void) setup(state);
	fake.cm_path = (struct ibv_ah_attr) {
		.is_global = 1, .port_num = 1, .sl = FOUND_SL,
		.grh = { .sgid_index = 1, .hop_limit = 64, .traffic_class = FOUND_CLASS },
	};
	return 0;
}

/* Opens a pair; both queue pairs, and both sessions, from which the record is made, have this level and class. */
static void check_in_force(const struct job *job, int sl, int traffic_class) {
	open_pair(job);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fake_queue_pairs[i]->path.sl, sl);
		assert_int_equal(fake_queue_pairs[i]->path.grh.traffic_class, traffic_class);
		assert_int_equal(verbs_session(pair.ends[i].session)->sl, sl);
		assert_int_equal(verbs_session(pair.ends[i].session)->traffic_class, traffic_class);
	}
	close_pair();
}

static void test_what_the_manager_found_stays(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	job.verbs.rdma_cm = true;
	check_in_force(&job, FOUND_SL, FOUND_CLASS);
}

/* The first key of the table would be another one. */
static void test_the_record_has_the_managers_partition(void **state) {
	struct job job = verbs_job(OP_WRITE);
	json_t *record = json_pack("{s:{}}", "params");

	(void) state;
	job.verbs.rdma_cm = true;
	fake.cm_pkey_index = 1;
	for (unsigned i = 0; i < 2; i++)
		fake.devices[i].pkeys[0][1] = 0x8005;
	open_pair(&job);
	pair.backend->describe(pair.ends[ROLE_CLIENT].session, record);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(record, "params"), "pkey")), 0x8005);
	json_decref(record);
	close_pair();
}

/* Though the control connection is of IPv4. */
static void test_the_manager_listens_at_a_gid_of_ipv6(void **state) {
	struct job job = verbs_job(OP_WRITE);
	char text[INET6_ADDRSTRLEN] = "";

	(void) state;
	for (unsigned i = 0; i < 2; i++)
		fake_set_gid(&fake.devices[i], 1, 1, i ? "2001:db8::2" : "2001:db8::1", IBV_GID_TYPE_ROCE_V2, NULL);
	job.verbs.rdma_cm = true;
	(void) copy_string(job.server_device, sizeof(job.server_device), "right0");
	open_pair(&job);
	assert_int_equal(fake.cm_bound.ss_family, AF_INET6);
	(void) inet_ntop(AF_INET6, &((struct sockaddr_in6 *) &fake.cm_bound)->sin6_addr, text, sizeof(text));
	assert_string_equal(text, "2001:db8::2");
	close_pair();
}

static void test_an_option_replaces_only_what_it_names(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	job.verbs.rdma_cm = true;
	job.verbs.sl = 0; /* asked for, though it is what others have without being asked */
	check_in_force(&job, 0, FOUND_CLASS);
	job.verbs.sl = 5;
	job.verbs.traffic_class = 40;
	check_in_force(&job, 5, 40);
	job.verbs.sl = -1;
	check_in_force(&job, FOUND_SL, 40);
}

static void test_what_was_not_asked_for_is_unknown_before_the_manager_has_found_it(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	job.verbs.rdma_cm = true;
	job.verbs.traffic_class = 40;
	pair = (struct verbs_pair) { .backend = backend_find("verbs"), .job = job };
	pair.ends[ROLE_CLIENT].address = address_of("10.0.0.1");
	assert_int_equal(end_open(&pair, ROLE_CLIENT), 0);
	assert_int_equal(verbs_session(pair.ends[ROLE_CLIENT].session)->sl, -1);
	assert_int_equal(verbs_session(pair.ends[ROLE_CLIENT].session)->traffic_class, 40);
	close_pair();
}

static void test_without_the_manager_both_are_0(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	check_in_force(&job, 0, 0);
	job.verbs.sl = 5;
	job.verbs.traffic_class = 40;
	check_in_force(&job, 5, 40);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_what_the_manager_found_stays, setup_manager),
		cmocka_unit_test_setup(test_the_record_has_the_managers_partition, setup_manager),
		cmocka_unit_test_setup(test_the_manager_listens_at_a_gid_of_ipv6, setup_manager),
		cmocka_unit_test_setup(test_an_option_replaces_only_what_it_names, setup_manager),
		cmocka_unit_test_setup(test_what_was_not_asked_for_is_unknown_before_the_manager_has_found_it,
				       setup_manager),
		cmocka_unit_test_setup(test_without_the_manager_both_are_0, setup_manager),
	};

	return cmocka_run_group_tests_name("verbs connected by a fake manager", tests, NULL, NULL);
}
