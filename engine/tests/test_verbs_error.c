/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: every failed completion, call and event says what failed, on which device, why and what to do,
 * with the documented exit code. Over the fake of libibverbs (fake_verbs.h): no proof of the verbs path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verbs_pair.h"

static const struct verbs_device roce = { .name = "mlx5_0", .port = 1, .gid_index = 3, .address = "10.0.0.1" };

static int explain(enum ibv_wc_status status) {
	const struct ibv_wc wc = { .status = status, .vendor_err = 0x81 };

	failure_reset();
	return verbs_wc_failure(&wc, &roce, "10.0.0.2");
}

static void test_every_status_is_explained(void **state) {
	(void) state;
	for (int s = IBV_WC_LOC_LEN_ERR; s <= IBV_WC_TM_RNDV_INCOMPLETE; s++) {
		assert_true(explain((enum ibv_wc_status) s) < 0);
		assert_non_null(strstr(failure_text(), "mlx5_0 port 1 (10.0.0.1, GID index 3) to 10.0.0.2: "));
		assert_non_null(strstr(failure_text(), "vendor 0x81"));
		assert_true(strlen(verbs_wc_cause((enum ibv_wc_status) s)) > 20);
		assert_true(strlen(failure_text()) < FAILURE_TEXT_MAX - 1); /* nothing is cut off */
		assert_non_null(strstr(failure_text(), verbs_wc_cause((enum ibv_wc_status) s)));
		assert_true(failure_code() == EXIT_PEER || failure_code() == EXIT_INTERNAL);
	}
}

/* The peer, and the way to it, is 4; this host is 6 (docs/definitions.md). */
static void test_exit_codes_of_statuses(void **state) {
	static const struct {
		enum ibv_wc_status status;
		int error;
		enum exit_code code;
		const char *part;
	} expected[] = {
		{ IBV_WC_RETRY_EXC_ERR, -ETIMEDOUT, EXIT_PEER, "MTU" },
		{ IBV_WC_RETRY_EXC_ERR, -ETIMEDOUT, EXIT_PEER, "GID index" },
		{ IBV_WC_RNR_RETRY_EXC_ERR, -ENOBUFS, EXIT_PEER, "no receive posted" },
		{ IBV_WC_REM_ACCESS_ERR, -EREMOTEIO, EXIT_PEER, "remote access error" },
		{ IBV_WC_REM_INV_REQ_ERR, -EREMOTEIO, EXIT_PEER, "longer than its receive" },
		{ IBV_WC_REM_OP_ERR, -EREMOTEIO, EXIT_PEER, "its own message" },
		{ IBV_WC_RESP_TIMEOUT_ERR, -ETIMEDOUT, EXIT_PEER, "cut" },
		{ IBV_WC_WR_FLUSH_ERR, -ECONNRESET, EXIT_PEER, "earlier error" },
		{ IBV_WC_LOC_LEN_ERR, -EIO, EXIT_INTERNAL, "--size" },
		{ IBV_WC_LOC_PROT_ERR, -EIO, EXIT_INTERNAL, "memory region" },
		{ IBV_WC_LOC_QP_OP_ERR, -EIO, EXIT_INTERNAL, "dmesg" },
		{ IBV_WC_FATAL_ERR, -EIO, EXIT_INTERNAL, "dmesg" },
		{ IBV_WC_GENERAL_ERR, -EIO, EXIT_INTERNAL, "dmesg" },
	};

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
		assert_int_equal(explain(expected[i].status), expected[i].error);
		assert_int_equal(failure_code(), expected[i].code);
		if (!strstr(failure_text(), expected[i].part))
			fail_msg("'%s' does not say '%s'", failure_text(), expected[i].part);
	}
}

static void test_impossible_statuses(void **state) {
	(void) state;
	assert_true(explain((enum ibv_wc_status) 999) < 0); /* of a newer libibverbs */
	assert_int_equal(failure_code(), EXIT_INTERNAL);
	assert_true(explain((enum ibv_wc_status) -1) < 0);
	assert_true(explain(IBV_WC_SUCCESS) < 0); /* handed in by mistake: never taken for a success */
	assert_int_equal(failure_code(), EXIT_INTERNAL);
	assert_string_equal(verbs_wc_cause(IBV_WC_SUCCESS), "");
}

static void test_infiniband_names_no_gid(void **state) {
	const struct verbs_device ib = { .name = "ib0", .port = 2, .gid_index = -1, .address = "lid 5" };
	const struct ibv_wc wc = { .status = IBV_WC_RETRY_EXC_ERR };

	(void) state;
	failure_reset();
	(void) verbs_wc_failure(&wc, &ib, "peer");
	assert_non_null(strstr(failure_text(), "ib0 port 2 (lid 5) to peer"));
}

static void test_failed_calls(void **state) {
	static const struct {
		int error;
		const char *part;
	} expected[] = {
		{ ENOMEM, "ulimit -l" }, { EPERM, "/dev/infiniband" }, { EACCES, "/dev/infiniband" },
		{ EINVAL, "ibv_devinfo -v" },
		{ EOPNOTSUPP, "does not have it" }, { EIO, "dmesg" }, { -ENOMEM, "ulimit -l" }, { 0, "no reason" },
		{ EBUSY, "cannot do this" },
	};

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
		failure_reset();
		assert_true(verbs_call_failure(expected[i].error, &roce, "do this") < 0);
		assert_int_equal(failure_code(), EXIT_HOST);
		assert_non_null(strstr(failure_text(), "mlx5_0: cannot do this"));
		if (!strstr(failure_text(), expected[i].part))
			fail_msg("'%s' does not say '%s'", failure_text(), expected[i].part);
	}
}

static void test_events(void **state) {
	static const enum ibv_event_type fatal[] = { IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR,
						     IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_SRQ_ERR,
						     IBV_EVENT_DEVICE_FATAL };
	static const enum ibv_event_type news[] = { IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_PATH_MIG,
						    IBV_EVENT_PORT_ACTIVE,
						    /* a reliable connection survives it, if it is short enough */
						    IBV_EVENT_PORT_ERR,
						    IBV_EVENT_LID_CHANGE, IBV_EVENT_SRQ_LIMIT_REACHED,
						    IBV_EVENT_GID_CHANGE };

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(fatal); i++) {
		failure_reset();
		assert_true(verbs_event_failure(&(struct ibv_async_event) { .event_type = fatal[i] }, &roce) < 0);
		assert_int_equal(failure_code(), EXIT_INTERNAL);
		assert_non_null(strstr(failure_text(), "mlx5_0 port 1"));
	}
	for (size_t i = 0; i < ELEMENTSOF(news); i++) {
		failure_reset();
		assert_int_equal(verbs_event_failure(&(struct ibv_async_event) { .event_type = news[i],
										 .element.port_num = 1 }, &roce), 0);
		assert_string_equal(failure_text(), "");
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_status_is_explained),
		cmocka_unit_test(test_exit_codes_of_statuses),
		cmocka_unit_test(test_impossible_statuses),
		cmocka_unit_test(test_infiniband_names_no_gid),
		cmocka_unit_test(test_failed_calls),
		cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests_name("verbs errors, over a fake libibverbs", tests, NULL, NULL);
}
