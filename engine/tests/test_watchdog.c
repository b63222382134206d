/* SPDX-License-Identifier: Apache-2.0 */
/* Purpose: who waits for ever inside a call is noticed, sooner once the peer has gone, and nobody else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/watchdog.h"

/* The watchdog looks four times a second; a loaded machine may be late by much more, so upper bounds are generous. */
enum { LOOK_MS = 250, LATE_MS = 5000 };

static _Atomic uint64_t heart;
static _Atomic uint64_t stalled_at;

static void on_stall(void *userdata) {
	struct watchdog *w = userdata;

	stalled_at = monotonic_ns();
	w->armed = false; /* once is enough; a run would end here */
}

static void sleep_ms(unsigned ms) { (void) usleep(ms * 1000); }

static uint64_t start(struct watchdog *w, uint64_t limit_ns, int fd) {
	uint64_t begin = monotonic_ns(); /* before its thread looks for the first time, however late this one goes on */

	stalled_at = 0;
	assert_int_equal(watchdog_start(w, &heart, limit_ns, fd, on_stall, w), 0);
	w->armed = true;
	return begin;
}

static bool stalls_within(unsigned ms) {
	for (unsigned waited = 0; waited < ms && !stalled_at; waited += 20)
		sleep_ms(20);
	return stalled_at;
}

static void test_stall(void **state) {
	struct watchdog w;
	uint64_t begin = start(&w, 500 * NSEC_PER_MSEC, -1);

	(void) state;
	assert_true(stalls_within(LATE_MS));
	assert_true(stalled_at - begin >= 500 * NSEC_PER_MSEC);
	watchdog_stop(&w);
}

static void test_beating_heart(void **state) {
	struct watchdog w;

	(void) state;
	start(&w, 2 * LOOK_MS * NSEC_PER_MSEC, -1);
	for (int i = 0; i < 40; i++) {
		heart++;
		sleep_ms(40);
	}
	w.armed = false;
	assert_false(stalled_at);
	watchdog_stop(&w);
}

static void test_disarmed(void **state) {
	struct watchdog w;

	(void) state;
	start(&w, LOOK_MS * NSEC_PER_MSEC, -1);
	w.armed = false;
	assert_false(stalls_within(4 * LOOK_MS));
	watchdog_stop(&w);
}

/* Half a minute of patience becomes a second when the peer has hung up. */
static void test_peer_gone(void **state) {
	int pair[2];
	struct watchdog w;

	(void) state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	start(&w, 30 * NSEC_PER_SEC, pair[0]);
	assert_false(stalls_within(1500));
	(void) close(pair[1]);
	assert_true(stalls_within(LATE_MS));
	watchdog_stop(&w);
	(void) close(pair[0]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_beating_heart),
		cmocka_unit_test(test_disarmed),
		cmocka_unit_test(test_peer_gone),
	};

	return cmocka_run_group_tests_name("watchdog", tests, NULL, NULL);
}
