/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: why a target's thread failed is said if the client still measures, and kept quiet if it has ended.
 * Over a backend whose poll fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/message.h"
#include "measure/transfer.h"

enum { THREADS = 2 };

static struct transfer transfer;
static struct thread threads[THREADS];
static struct lane lanes[THREADS], *lane_list[THREADS];
static struct session session, *sessions[] = { &session };
static int client;

/* One thread fails; the other goes on until it is told to end. */
static int failing_poll(struct session *s, struct completion *ret, unsigned max) {
	(void) ret;
	(void) max;
	return failure(-ENODEV, EXIT_INTERNAL, "the link of %s is down", s->device);
}

static int quiet_poll(struct session *s, struct completion *ret, unsigned max) {
	(void) s;
	(void) ret;
	(void) max;
	return 0;
}

static const struct backend failing = { .poll = failing_poll }, quiet = { .poll = quiet_poll };

static int open_target(void **state) {
	int two[2];

	(void) state;
	failure_reset();
	transfer = (struct transfer) {
		.job.threads = THREADS, .role = ROLE_SERVER, .n_lanes = THREADS, .lanes = lane_list, .threads = threads,
		.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.place.placement = { .why = UNPLACED_OFF, .memory = MEMORY_ANYWHERE },
	};
	assert_true(transfer.done_fd >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, two), 0);
	assert_int_equal(control_new(two[0], true, NSEC_PER_SEC, &transfer.control), 0);
	client = two[1];
	(void) copy_string(session.device, sizeof(session.device), "left0");
	for (int i = 0; i < THREADS; i++) {
		lanes[i] = (struct lane) { .backend = i == 1 ? &failing : &quiet, .sessions = sessions,
					   .n_sessions = 1 };
		lane_list[i] = &lanes[i];
	}
	assert_int_equal(transfer_start(&transfer, transfer_attend), 0);
	while (!atomic_load(&transfer.stop))
		;
	return 0;
}

static int close_target(void **state) {
	(void) state;
	transfer_stop(&transfer);
	transfer.control = control_close(transfer.control);
	transfer.done_fd = close_fd(transfer.done_fd);
	client = close_fd(client);
	failure_reset();
	return 0;
}

static void test_a_client_that_measures_hears_why(void **state) {
	(void) state;
	assert_string_equal(failure_text(), "");
	assert_int_equal(transfer_why(&transfer), -ENODEV);
	assert_string_equal(failure_text(), "the link of left0 is down");
	assert_int_equal(failure_code(), EXIT_INTERNAL);
}

static void test_a_client_that_has_ended_is_no_failure(void **state) {
	(void) state;
	client = close_fd(client);
	assert_int_equal(transfer_why(&transfer), 0);
	assert_string_equal(failure_text(), "");
}

static void test_the_last_word_of_a_client_counts(void **state) {
	(void) state;
	assert_int_equal(write(client, "", 1), 1);
	assert_int_equal(transfer_why(&transfer), 0);
	assert_string_equal(failure_text(), "");
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_client_that_measures_hears_why, open_target, close_target),
		cmocka_unit_test_setup_teardown(test_a_client_that_has_ended_is_no_failure, open_target, close_target),
		cmocka_unit_test_setup_teardown(test_the_last_word_of_a_client_counts, open_target, close_target),
	};

	return cmocka_run_group_tests_name("why a target's thread failed", tests, NULL, NULL);
}
