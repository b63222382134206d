/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: `perch meet --lines` answers each request once, whatever its meeting comes to, and meetings do not wait for
 * each other. The server is the real one, in a process of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cli/meet.h"
#include "pair.h"

static const struct token none;
static uint16_t port;                   /* of the server */
static pid_t server, meeter;
static FILE *requests, *answers;

/* Standard input of `perch meet --lines`, its output, and a process that is it. */
static int set_up(void **state) {
	int in[2], out[2];

	(void) state;
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	meeter = fork();
	assert_true(meeter >= 0);
	if (meeter == 0) {
		const struct options o = { .command = COMMAND_MEET, .lines = true };

		(void) close(in[1]);
		(void) close(out[0]);
		_exit(meet_lines(&o, &none, in[0], out[1]));
	}
	(void) close(in[0]);
	(void) close(out[1]);
	requests = fdopen(in[1], "w");
	answers = fdopen(out[0], "r");
	assert_true(requests && answers);
	return 0;
}

/* The end of its input is its own end, with exit code 0, also while somebody waits. */
static int tear_down(void **state) {
	int status;

	(void) state;
	if (requests)
		(void) fclose(requests);
	assert_int_equal(waitpid(meeter, &status, 0), meeter);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_MEASURED);
	(void) fclose(answers);
	return 0;
}

static void say(const char *line) {
	(void) fprintf(requests, "%s\n", line);
	(void) fflush(requests);
}

static void ask_at(uint16_t at, int id, const char *flow, int parties, int timeout_ms) {
	char line[512];

	(void) snprintf(line, sizeof(line), "{\"id\": %d, \"host\": \"127.0.0.1\", \"port\": %u, \"flow\": \"%s\", "
			"\"parties\": %d, \"timeout_ms\": %d}", id, at, flow, parties, timeout_ms);
	say(line);
}

static void ask(int id, const char *flow, int parties, int timeout_ms) {
	ask_at(port, id, flow, parties, timeout_ms);
}

/* The next answer's id, exit code and words. -1: it has no id. */
static int heard(int *ret_exit, char ret_message[FAILURE_TEXT_MAX]) {
	const char *message = "";
	json_int_t id = -1;
	int same_machine = 1;
	char line[4096];
	json_t *o;

	assert_non_null(fgets(line, sizeof(line), answers));
	o = json_loads(line, 0, NULL);
	assert_int_equal(json_unpack(o, "{s?I, s:i, s?s, s?b!}", "id", &id, "exit", ret_exit, "message", &message,
				     "same_machine", &same_machine), 0);
	assert_int_equal(json_object_get(o, "same_machine") != NULL, *ret_exit == 0);
	assert_true(same_machine); /* all of this test is on one */
	(void) snprintf(ret_message, FAILURE_TEXT_MAX, "%s", message);
	json_decref(o);
	return (int) id;
}

static void test_two_meet(void **state) {
	char message[FAILURE_TEXT_MAX];
	int exit, first, second;

	(void) state;
	ask(1, "two", 2, 20000);
	ask(2, "two", 2, 20000);
	first = heard(&exit, message);
	assert_int_equal(exit, 0);
	second = heard(&exit, message);
	assert_int_equal(exit, 0);
	assert_int_equal(first + second, 3);
}

/* A meeting that waits for its peer does not delay others. */
static void test_side_by_side(void **state) {
	char message[FAILURE_TEXT_MAX];
	int exit;

	(void) state;
	ask(1, "waits", 2, 600000);
	ask(2, "alone", 1, 20000);
	assert_int_equal(heard(&exit, message), 2);
	assert_int_equal(exit, 0);
}

static void test_absent_peer(void **state) {
	char message[FAILURE_TEXT_MAX];
	int exit;

	(void) state;
	ask(7, "absent", 2, 2000); /* the greeting takes a part of it */
	assert_int_equal(heard(&exit, message), 7);
	assert_int_equal(exit, EXIT_PEER);
	assert_non_null(strstr(message, "1 of 2 parties came"));
	ask(8, "alone", 1, 20000); /* and the next one has words of its own */
	assert_int_equal(heard(&exit, message), 8);
	assert_int_equal(exit, 0);
}

/* A party that was cancelled is none: who comes later waits for another. */
static void test_cancelled(void **state) {
	char message[FAILURE_TEXT_MAX];
	int exit;

	(void) state;
	ask(1, "cancelled", 2, 600000);
	ask(2, "barrier", 1, 20000); /* answered once the server takes connections */
	assert_int_equal(heard(&exit, message), 2);
	say("{\"cancel\": 1}");
	assert_int_equal(heard(&exit, message), 1);
	assert_int_equal(exit, EXIT_PEER);
	assert_string_equal(message, "the meeting was cancelled");
}

static void test_no_server(void **state) {
	char message[FAILURE_TEXT_MAX];
	uint16_t free_port;
	int exit, listener = pair_listen(&free_port);

	(void) state;
	(void) close(listener);
	ask_at(free_port, 3, "f", 2, 5000);
	assert_int_equal(heard(&exit, message), 3);
	assert_int_equal(exit, EXIT_PEER);
	assert_non_null(strstr(message, "cannot connect to 127.0.0.1"));
}

/* A bad line is answered, with its id where it has one, and the next one is read. */
static void test_bad_lines(void **state) {
	static const struct {
		const char *line;
		int id;
	} bad[] = {
		{ "", -1 },
		{ "no JSON", -1 },
		{ "[1]", -1 },
		{ "{\"cancel\": \"1\"}", -1 },
		{ "{\"id\": 4, \"host\": \"h\"}", 4 },
		{ "{\"id\": 5, \"host\": \"h\", \"port\": 0, \"flow\": \"f\", \"timeout_ms\": 1}", 5 },
		{ "{\"id\": 6, \"host\": \"h\", \"port\": 1, \"flow\": \"\", \"timeout_ms\": 1}", 6 },
		{ "{\"id\": 7, \"host\": \"h\", \"port\": 1, \"flow\": \"f\", \"timeout_ms\": 1, \"more\": 1}", 7 },
	};
	char message[FAILURE_TEXT_MAX], longest[5001];
	int exit;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		say(bad[i].line);
		assert_int_equal(heard(&exit, message), bad[i].id);
		assert_int_equal(exit, EXIT_USAGE);
	}
	memset(longest, ' ', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	say(longest);
	assert_int_equal(heard(&exit, message), -1);
	assert_non_null(strstr(message, "4096"));
	ask(9, "alone", 1, 20000);
	assert_int_equal(heard(&exit, message), 9);
	assert_int_equal(exit, 0);
}

/* `perch serve` is executed again for each connection, so that it must be the program itself. */
static pid_t serve(uint16_t *ret_port) {
	char text[16], program[PATH_MAX], ready[] = "/tmp/perch-meet-XXXXXX";
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	int listener = pair_listen(ret_port), fd = mkstemp(ready);
	pid_t pid;

	assert_true(n > 0);
	program[n] = '\0';
	(void) strcpy(strstr(program, "/tests/test_meet_lines"), "/perch");
	(void) close(listener);
	assert_true(fd >= 0);
	(void) close(fd);
	(void) unlink(ready);
	(void) snprintf(text, sizeof(text), "%u", *ret_port);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void) execl(program, "perch", "serve", "--port", text, "--ready-file", ready, NULL);
		_exit(127);
	}
	while (access(ready, F_OK) < 0) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		(void) usleep(1000);
	}
	return pid;
}

/* The first party ends the server as soon as it has its answer, as an agent does after its last flow. */
static void test_server_ends_after_the_meeting(void **state) {
	char message[FAILURE_TEXT_MAX];
	uint16_t at;
	int exit;

	(void) state;
	for (int i = 0; i < 20; i++) {
		pid_t pid = serve(&at);

		ask_at(at, 1, "last", 2, 20000);
		ask_at(at, 2, "last", 2, 20000);
		(void) heard(&exit, message);
		assert_int_equal(exit, 0);
		assert_int_equal(kill(pid, SIGTERM), 0);
		(void) heard(&exit, message);
		assert_string_equal(message, "");
		assert_int_equal(exit, 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
}

static int start_server(void **state) {
	(void) state;
	server = serve(&port);
	return 0;
}

static int stop_server(void **state) {
	(void) state;
	(void) kill(server, SIGTERM);
	return waitpid(server, NULL, 0) == server ? 0 : -1;
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_two_meet, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_side_by_side, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_absent_peer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cancelled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_server, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bad_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_server_ends_after_the_meeting, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
