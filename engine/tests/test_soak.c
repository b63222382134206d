/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: the keeper of a soak over a clock and a pipe of the test's own. Whatever the process that measures does,
 * FILE has what it said, the time in between is a gap, and it is started again, later and later, while that was asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/message.h"
#include "cli/soak.h"
#include "command_line.h"
#include "measure/exchange.h"

/* What a process that measures does, and how many ms after what it did before. STOPS: the keeper is told to stop. */
enum deed { ENDS, CONNECTS, MEASURES, LOSES, IS_OVER, MUMBLES, HANGS, STOPS };
struct step {
	enum deed deed;
	uint64_t after_ms;
	int value;              /* ENDS: the exit code, or less 0 the signal */
};

enum { CHILD = 4242, STARTS_MAX = 64, STEPS_MAX = 8, LINES_MAX = 64 };

static char path[] = "/tmp/perch-soak.XXXXXX";
static uint64_t now_ns, epoch_ns, wall_ahead_ns, step_ns;
static const struct step (*scripts)[STEPS_MAX];         /* of each process; the last one of all that follow */
static size_t n_scripts;
static const struct step *step;                         /* NULL: none runs */
static int said = -1, status;
static bool heeds;                                      /* SIGTERM */
static double measured_s;                               /* until when it has said intervals */
static uint64_t starts_ms[STARTS_MAX];
static size_t n_starts;
static json_t *lines[LINES_MAX];
static size_t n_lines;

/* ---- in the place of the C library's ---- */

int clock_gettime(clockid_t clock, struct timespec *t) {
	uint64_t ns = now_ns + (clock == CLOCK_REALTIME ? wall_ahead_ns : 0);

	*t = (struct timespec) { .tv_sec = (time_t) (ns / NSEC_PER_SEC), .tv_nsec = (long) (ns % NSEC_PER_SEC) };
	return 0;
}

int pipe2(int ends[2], int flags) {
	int e = (int) syscall(SYS_pipe2, ends, flags);

	said = e == 0 ? dup(ends[1]) : -1;
	return e;
}

pid_t fork(void) {
	assert_true(n_starts < STARTS_MAX);
	step = scripts[MIN(n_starts, n_scripts - 1)];
	starts_ms[n_starts++] = now_ns / NSEC_PER_MSEC;
	step_ns = now_ns + step->after_ms * NSEC_PER_MSEC;
	return CHILD;
}

static void child_ends(int with) {
	status = with < 0 ? -with : with << 8;
	step = NULL;
	(void) close(said);
	said = -1;
}

pid_t waitpid(pid_t pid, int *ret, int flags) {
	assert_int_equal(pid, CHILD);
	assert_int_equal(flags, 0);
	assert_null(step);
	*ret = status;
	return pid;
}

static void say(json_t *line) {
	char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(12));

	assert_non_null(text);
	assert_true(dprintf(said, "%s\n", text) > 0);
	free(text);
	json_decref(line);
}

static double seconds(void) {
	return (double) ((int64_t) now_ns - (int64_t) epoch_ns) / 1e9;
}

static void say_interval(void) {
	say(json_pack("{s:s, s:f, s:f, s:f, s:i, s:i, s:{s:i}}", "kind", "interval", "start_s", measured_s, "end_s",
		      seconds(), "elapsed_s", seconds() - measured_s, "messages", 10, "bytes", 80, "memory",
		      "client_bytes", 1));
	measured_s = seconds();
}

static void act(void) {
	char boot[BOOT_ID_MAX];

	switch (step->deed) {
	case CONNECTS:
		if (epoch_ns == 0)
			epoch_ns = now_ns;
		measured_s = seconds();
		host_boot_id(boot);
		say(json_pack("{s:s, s:f, s:s, s:I}", "kind", "connection", "start_s", seconds(), "boot_id", boot,
			      "epoch_ns", (json_int_t) epoch_ns));
		break;
	case MEASURES:
		say_interval();
		break;
	case LOSES:
		say(json_pack("{s:s, s:s, s:i}", "kind", "lost", "reason", "it was cut", "code", EXIT_PEER));
		break;
	case IS_OVER:
		say(json_pack("{s:s}", "kind", "over"));
		break;
	case MUMBLES:
		assert_true(dprintf(said, "{\"kind\":\n") > 0);
		break;
	case STOPS:
		assert_int_equal(raise(SIGTERM), 0);
		break;
	case HANGS:
		step_ns = UINT64_MAX;
		return;
	case ENDS:
		child_ends(step->value);
		return;
	}
	step++;
	step_ns = now_ns + step->after_ms * NSEC_PER_MSEC;
}

int kill(pid_t pid, int signal) {
	assert_int_equal(pid, CHILD);
	if (step && signal == SIGTERM && heeds) {
		say_interval();
		say(json_pack("{s:s}", "kind", "over"));
		child_ends(0);
	}
	if (step && signal == SIGKILL)
		child_ends(-SIGKILL);
	return 0;
}

/* Time passes only here. */
int poll(struct pollfd *p, nfds_t n, int timeout) {
	uint64_t until = timeout < 0 ? UINT64_MAX : now_ns + (uint64_t) timeout * NSEC_PER_MSEC;
	const struct timespec none = { 0 };
	int ready;

	while ((ready = (int) syscall(SYS_ppoll, p, n, &none, NULL, 0)) == 0) {
		if (!step || step_ns > until) {
			assert_true(until != UINT64_MAX);
			now_ns = until;
			return 0;
		}
		now_ns = MAX(now_ns, step_ns);
		act();
	}
	return ready;
}

/* ---- a soak ---- */

static void forget(void) {
	for (size_t i = 0; i < n_lines; i++)
		json_decref(lines[i]);
	n_lines = 0;
}

static int begin(void **state) {
	int fd;

	(void) state;
	memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	fd = mkstemp(path);
	now_ns = 1000 * NSEC_PER_SEC;
	wall_ahead_ns = 1000000000 * NSEC_PER_SEC;
	epoch_ns = 0;
	heeds = true;
	return fd < 0 || close(fd) < 0 || unlink(path) < 0 ? -1 : 0;
}

static int done(void **state) {
	(void) state;
	forget();
	(void) unlink(path);
	return 0;
}

static void read_lines(void) {
	FILE *in = fopen(path, "re");
	json_t *line;

	forget();
	while (in && (line = json_loadf(in, JSON_DISABLE_EOF_CHECK, NULL))) {
		assert_true(n_lines < LINES_MAX);
		lines[n_lines++] = line;
	}
	if (in)
		(void) fclose(in);
}

/* A soak of a minute in intervals of 10 s; its exit code. Its output is discarded. */
static int soak(const struct step (*of)[STEPS_MAX], size_t n) {
	char line[256];
	int out = memfd_create("out", MFD_CLOEXEC), screen = dup(STDOUT_FILENO), code;

	scripts = of;
	n_scripts = n;
	n_starts = 0;
	(void) snprintf(line, sizeof(line), "perch lat 127.0.0.1 --json --size 8 --duration 60s --interval 10s "
			"--reconnect 30s --soak %s", path);
	(void) fflush(stdout);
	assert_true(out >= 0 && screen >= 0 && dup2(out, STDOUT_FILENO) >= 0);
	code = parse_line(line);
	if (code == 0)
		code = command_soak(&options);
	(void) fflush(stdout);
	(void) dup2(screen, STDOUT_FILENO);
	(void) close(screen);
	(void) close(out);
	read_lines();
	return code;
}

#define SOAK(...) soak((const struct step[][STEPS_MAX]) { __VA_ARGS__ }, \
		       sizeof((const struct step[][STEPS_MAX]) { __VA_ARGS__ }) / sizeof(struct step[STEPS_MAX]))

static const json_t *find(const char *kind) {
	for (size_t i = n_lines; i-- > 0;)
		if (streq(json_string_value(json_object_get(lines[i], "kind")), kind))
			return lines[i];
	fail_msg("there is no line of the kind %s", kind);
	return NULL;
}

static double of(const json_t *line, const char *key) {
	return json_number_value(json_object_get(line, key));
}

static bool reason_has(const char *words) {
	return strstr(json_string_value(json_object_get(find("gap"), "reason")), words);
}

static void kinds_are(const char *expected) {
	char found[512] = "";

	for (size_t i = 0; i < n_lines; i++)
		(void) snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s", i ? " " : "",
				json_string_value(json_object_get(lines[i], "kind")));
	assert_string_equal(found, expected);
}

static const json_t *whole(void) {
	return json_object_get(find("latency"), "soak");
}

#define WELL { { CONNECTS, 50, 0 }, { MEASURES, 10000, 0 }, { MEASURES, 50000, 0 }, { IS_OVER, 0, 0 }, { ENDS, 5, 0 } }
#define REFUSED { { LOSES, 0, 0 }, { ENDS, 0, EXIT_PEER } }

static void test_one_connection(void **state) {
	(void) state;
	assert_int_equal(SOAK(WELL), EXIT_MEASURED);
	kinds_are("soak connection interval interval latency");
	assert_int_equal(n_starts, 1);
	assert_true(of(whole(), "passed_s") == 60 && of(whole(), "gaps") == 0);
	assert_true(json_is_false(json_object_get(whole(), "stopped")));
	/* its time begins with the first connection, by both clocks */
	assert_true(of(lines[0], "started_ms") == 1000001000050.0);
	assert_true(of(json_object_get(lines[2], "memory"), "keeper_bytes") > 0);
}

/* 0.1 s, then twice as long each time, up to 5 s, and 0.1 s again after a whole interval. */
static void test_it_is_started_again_later_and_later(void **state) {
	static const uint64_t waits_ms[] = { 100, 200, 400, 800, 1600, 3200, 5000, 5000 };

	(void) state;
	assert_int_equal(SOAK({ { CONNECTS, 0, 0 }, { MEASURES, 10000, 0 }, { LOSES, 0, 0 }, { ENDS, 0, EXIT_PEER } },
			      REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED,
			      { { CONNECTS, 0, 0 }, { MEASURES, 10000, 0 }, { ENDS, 0, -SIGSEGV } },
			      { { CONNECTS, 0, 0 }, { MEASURES, 10000, 0 }, { IS_OVER, 0, 0 }, { ENDS, 0, 0 } }),
			 EXIT_MEASURED);
	assert_int_equal(n_starts, 10);
	assert_int_equal(starts_ms[1] - starts_ms[0], 10100);
	for (size_t i = 1; i < ELEMENTSOF(waits_ms); i++)
		assert_int_equal(starts_ms[i + 1] - starts_ms[i], waits_ms[i]);
	assert_int_equal(starts_ms[9] - starts_ms[8], 10100);
	kinds_are("soak connection interval gap connection interval gap connection interval latency");
	assert_string_equal(json_string_value(json_object_get(lines[3], "reason")), "it was cut");
	assert_true(of(lines[3], "attempts") == 8);
	assert_true(of(lines[3], "start_s") == 10 && fabs(of(lines[3], "end_s") - 26.3) < 1e-6);
	assert_true(reason_has("ended by signal 11"));
}

/* Each makes a connection and breaks it: that is no server that is back. */
static void test_a_connection_without_an_interval_is_a_failure(void **state) {
	(void) state;
	assert_int_equal(SOAK({ { CONNECTS, 0, 0 }, { MEASURES, 10000, 0 }, { LOSES, 0, 0 }, { ENDS, 0, EXIT_PEER } },
			      { { CONNECTS, 0, 0 }, { LOSES, 0, 0 }, { ENDS, 0, EXIT_PEER } }), EXIT_MEASURED);
	assert_int_equal(starts_ms[9] - starts_ms[8], 5000);
	assert_true(of(whole(), "passed_s") == 60);
}

static void test_a_first_connection_that_fails_is_no_gap(void **state) {
	(void) state;
	assert_int_equal(SOAK({ { LOSES, 0, 0 }, { ENDS, 0, EXIT_PEER } }), EXIT_PEER);
	assert_int_equal(n_starts, 1);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_it_gives_up_after_the_limit(void **state) {
	(void) state;
	assert_int_equal(SOAK({ { CONNECTS, 0, 0 }, { MEASURES, 10000, 0 }, { ENDS, 0, EXIT_PEER } }, REFUSED),
			 EXIT_PEER);
	kinds_are("soak connection interval gap latency");
	assert_true(strstr(failure_text(), "cannot reconnect within 30 s"));
	assert_true(of(find("gap"), "start_s") == 10 && of(find("gap"), "end_s") >= 40);
}

/* A library that hangs while it connects has no watchdog yet. */
static void test_a_process_that_hangs_while_it_connects_is_killed(void **state) {
	(void) state;
	assert_int_equal(SOAK({ { CONNECTS, 0, 0 }, { MEASURES, 10000, 0 }, { ENDS, 0, EXIT_PEER } },
			      { { HANGS, 0, 0 } }),
			 EXIT_PEER);
	assert_int_equal(n_starts, 2);
	assert_true(reason_has("ended by signal 9"));
	kinds_are("soak connection interval gap latency");
}

static void test_a_stop_ends_with_what_was_measured(void **state) {
	(void) state;
	assert_int_equal(SOAK({ { CONNECTS, 0, 0 }, { MEASURES, 10000, 0 }, { STOPS, 5000, 0 }, { HANGS, 0, 0 } }),
			 EXIT_MEASURED);
	kinds_are("soak connection interval interval latency");
	assert_true(json_is_true(json_object_get(whole(), "stopped")) && of(whole(), "passed_s") == 15);
}

static void test_a_process_that_does_not_heed_a_stop_is_killed(void **state) {
	(void) state;
	heeds = false;
	assert_int_equal(SOAK({ { CONNECTS, 0, 0 }, { MEASURES, 10000, 0 }, { STOPS, 5000, 0 }, { HANGS, 0, 0 } }),
			 EXIT_MEASURED);
	assert_in_range(now_ns / NSEC_PER_MSEC, 1015800, 1015801); /* poll() counts whole ones */
	kinds_are("soak connection interval latency");
}

static void test_what_is_no_line_is_left_out(void **state) {
	(void) state;
	assert_int_equal(SOAK({ { CONNECTS, 0, 0 }, { MUMBLES, 1, 0 }, { MEASURES, 59999, 0 }, { IS_OVER, 0, 0 },
				{ ENDS, 0, 0 } }),
			 EXIT_MEASURED);
	kinds_are("soak connection interval latency");
}

#define STOPPED { { CONNECTS, 0, 0 }, { MEASURES, 10000, 0 }, { STOPS, 0, 0 }, { HANGS, 0, 0 } }

/* Within a boot its own clock counts on, whatever the wall says. */
static void test_it_goes_on_by_its_own_clock(void **state) {
	(void) state;
	assert_int_equal(SOAK(STOPPED), EXIT_MEASURED);
	now_ns += 20 * NSEC_PER_SEC;
	wall_ahead_ns -= 3600 * NSEC_PER_SEC;
	assert_int_equal(SOAK({ { CONNECTS, 0, 0 }, { MEASURES, 30000, 0 }, { IS_OVER, 0, 0 }, { ENDS, 0, 0 } }),
			 EXIT_MEASURED);
	assert_true(of(find("gap"), "start_s") == 10 && of(find("gap"), "end_s") == 30);
	assert_true(reason_has("perch was stopped and restarted"));
	assert_true(of(whole(), "passed_s") == 60 && json_is_true(json_object_get(whole(), "resumed")));
	assert_int_equal(SOAK(WELL), EXIT_USAGE);
	assert_int_equal(n_starts, 0);
	assert_true(strstr(failure_text(), "this soak has ended"));
}

/* FILE as a host has it that was booted: of another boot, and its last line was said by the wall at that moment. */
static void boot(uint64_t away_s) {
	FILE *out = fopen(path, "we");
	uint64_t wall_ns = now_ns + wall_ahead_ns;
	json_t *time = json_string("2001-09-09T02:03:30.000Z");

	assert_non_null(out);
	for (size_t i = 0; i < n_lines; i++) {
		if (json_object_get(lines[i], "boot_id"))
			(void) json_object_set_new(lines[i], "boot_id", json_string("another"));
		if (streq(json_string_value(json_object_get(lines[i], "kind")), "interval"))
			(void) json_object_set(lines[i], "ended", time);
		assert_int_equal(json_dumpf(lines[i], out, JSON_COMPACT | JSON_REAL_PRECISION(12)), 0);
		(void) fputc('\n', out);
	}
	json_decref(time);
	assert_int_equal(fclose(out), 0);
	now_ns = 5 * NSEC_PER_SEC;
	wall_ahead_ns = wall_ns + away_s * NSEC_PER_SEC - now_ns;
	epoch_ns = 0;
}


/* Ten seconds had passed, and the host was away for so many. No host answers it. */
static void comes_back(uint64_t away_s, int code, double passed_s) {
	assert_int_equal(SOAK(STOPPED), EXIT_MEASURED);
	assert_true(now_ns + wall_ahead_ns == UINT64_C(1000001010) * NSEC_PER_SEC);
	boot(away_s);
	assert_int_equal(SOAK(REFUSED), code);
	assert_true(of(find("gap"), "start_s") == 10 && of(find("gap"), "end_s") == of(whole(), "passed_s"));
	assert_true(fabs(of(whole(), "passed_s") - passed_s) < 5);
}

static void test_across_a_boot_the_wall_counts(void **state) {
	(void) state;
	comes_back(25, EXIT_MEASURED, 60);
	assert_true(now_ns >= 30 * NSEC_PER_SEC && now_ns < 35 * NSEC_PER_SEC);
}

/* One that was set back makes no two intervals of one time; one that is days ahead ends the soak as planned. */
static void test_a_wall_clock_that_jumps_over_a_boot(void **state) {
	(void) state;
	comes_back((uint64_t) -3600, EXIT_PEER, 40);
	(void) unlink(path);
	(void) begin(state);
	comes_back(UINT64_C(10) * 86400, EXIT_MEASURED, 60);
	assert_int_equal(n_starts, 0);
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_connection, begin, done),
		cmocka_unit_test_setup_teardown(test_it_is_started_again_later_and_later, begin, done),
		cmocka_unit_test_setup_teardown(test_a_connection_without_an_interval_is_a_failure, begin, done),
		cmocka_unit_test_setup_teardown(test_a_first_connection_that_fails_is_no_gap, begin, done),
		cmocka_unit_test_setup_teardown(test_it_gives_up_after_the_limit, begin, done),
		cmocka_unit_test_setup_teardown(test_a_process_that_hangs_while_it_connects_is_killed, begin, done),
		cmocka_unit_test_setup_teardown(test_a_stop_ends_with_what_was_measured, begin, done),
		cmocka_unit_test_setup_teardown(test_a_process_that_does_not_heed_a_stop_is_killed, begin, done),
		cmocka_unit_test_setup_teardown(test_what_is_no_line_is_left_out, begin, done),
		cmocka_unit_test_setup_teardown(test_it_goes_on_by_its_own_clock, begin, done),
		cmocka_unit_test_setup_teardown(test_across_a_boot_the_wall_counts, begin, done),
		cmocka_unit_test_setup_teardown(test_a_wall_clock_that_jumps_over_a_boot, begin, done),
	};

	return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}
