/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: the handshake ends well only where both ends know the same token, or neither has one; everybody else is
 * refused by both ends, with the reason, within the deadline.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "base/clock.h"
#include "pair.h"

static const struct token none;
static const struct token right = { .length = 16, .bytes = "0123456789abcdef" };
static const struct token wrong = { .length = 16, .bytes = "0123456789abcdeF" };
static const struct token prefix = { .length = 17, .bytes = "0123456789abcdef0" };

static struct pair p;
static uint8_t bytes[CONTROL_FRAME_MAX + 256];

static int set_up(void **state) {
	(void) state;
	failure_reset();
	p = pair_open();
	return 0;
}

static int tear_down(void **state) {
	(void) state;
	p.ours = close_fd(p.ours);
	p.theirs = close_fd(p.theirs);
	return 0;
}

/*
 * A server in a process of its own: one handshake, one frame there and back. Its exit code is the negative of what the
 * handshake answered (errno values fit into a byte).
 */
static pid_t start_server(int listener, const struct token *token) {
	struct control *c;
	int fd, r;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	r = pair_greet(fd, token, &c);
	if (r == 0) {
		control_set_timeout(c, 2 * NSEC_PER_SEC);
		r = control_expect(c, FRAME_JOB, 2 * NSEC_PER_SEC, NULL);
	}
	if (r == 0)
		r = control_send(c, FRAME_RESULT, NULL);
	_exit(-r);
}

/* What the client's handshake answers; *ret_server is what the server's did. */
static int shake(const struct token *client, const struct token *server, int *ret_server, bool *ret_keyed) {
	struct control *c = NULL;
	uint16_t port;
	int listener = pair_listen(&port), status, r;
	pid_t pid = start_server(listener, server);

	(void) close(listener);
	failure_reset();
	r = control_connect("127.0.0.1", port, NULL, client, 2 * NSEC_PER_SEC, &c);
	if (r == 0) {
		*ret_keyed = c->keyed;
		assert_int_equal(control_send(c, FRAME_JOB, NULL), 0);
		assert_int_equal(control_expect(c, FRAME_RESULT, 2 * NSEC_PER_SEC, NULL), 0);
		assert_null(control_close(c));
	} else
		assert_null(c);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	*ret_server = -WEXITSTATUS(status);
	return r;
}

static void test_the_same_token(void **state) {
	bool keyed = false;
	int server;

	(void) state;
	assert_int_equal(shake(&right, &right, &server, &keyed), 0);
	assert_int_equal(server, 0);
	assert_true(keyed);
}

static void test_no_token_on_both_sides(void **state) {
	bool keyed = true;
	int server;

	(void) state;
	assert_int_equal(shake(&none, &none, &server, &keyed), 0);
	assert_int_equal(server, 0);
	assert_false(keyed);
}

static void test_different_tokens(void **state) {
	const struct token *others[] = { &wrong, &prefix };
	int server;
	bool keyed;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(others); i++) {
		assert_int_equal(shake(others[i], &right, &server, &keyed), -EREMOTEIO);
		assert_non_null(strstr(failure_text(), "wrong token"));
		assert_int_equal(failure_code(), EXIT_PEER);
		assert_int_equal(server, -EACCES);
	}
}

static void test_a_token_on_one_side(void **state) {
	int server;
	bool keyed;

	(void) state;
	assert_int_equal(shake(&none, &right, &server, &keyed), -EACCES);
	assert_non_null(strstr(failure_text(), "--token-file"));
	assert_int_equal(failure_code(), EXIT_PEER);
	assert_int_equal(server, -ECONNRESET);
	assert_int_equal(shake(&right, &none, &server, &keyed), -EACCES);
	assert_non_null(strstr(failure_text(), "cannot prove who it is"));
	assert_int_equal(server, -ECONNRESET);
}

/* From here on one end is bytes. The server's half, fed with all that its client would ever send. */
static void refuse_client(const struct token *token, const void *data, size_t length, bool ends, int error,
			  const char *reason) {
	struct control *c = NULL;

	failure_reset();
	assert_int_equal(send(p.ours, data, length, MSG_NOSIGNAL), length);
	if (ends)
		(void) shutdown(p.ours, SHUT_WR);
	assert_int_equal(pair_greet(p.theirs, token, &c), error);
	p.theirs = -1; /* taken over, also when it fails */
	assert_null(c);
	if (!strstr(failure_text(), reason))
		fail_msg("\"%s\" does not say: %s", failure_text(), reason);
	assert_int_equal(failure_code(), EXIT_PEER);
	(void) tear_down(NULL);
	(void) set_up(NULL);
}

static size_t hello(unsigned version, unsigned type, size_t length, bool has_token, uint8_t *ret) {
	uint8_t payload[256] = { 0 };

	payload[CONTROL_NONCE] = has_token;
	return frame_bytes(version, type, payload, length, NULL, false, 0, ret);
}

static void test_strangers(void **state) {
	(void) state;
	refuse_client(&none, "garbage garbage garbage", 23, false, -EPROTO, "does not use perch's control protocol");
	refuse_client(&none, "GET / HTTP/1.0\r\n\r\n", 18, true, -EPROTO, "another program");
	refuse_client(&none, "", 0, true, -ECONNRESET, "closed");
}

static void test_bad_hellos(void **state) {
	(void) state;
	refuse_client(&none, bytes, hello(CONTROL_VERSION + 1, FRAME_HELLO, 33, false, bytes), false, -EPROTONOSUPPORT,
		      "version 3");
	refuse_client(&none, bytes, hello(0, FRAME_HELLO, 33, false, bytes), false, -EPROTONOSUPPORT, "version 0");
	refuse_client(&none, bytes, hello(CONTROL_VERSION, FRAME_JOB, 33, false, bytes), false, -EPROTO,
		      "did not greet");
	refuse_client(&none, bytes, hello(CONTROL_VERSION, FRAME_HELLO, 32, false, bytes), false, -EPROTO,
		      "did not greet");
	refuse_client(&none, bytes, hello(CONTROL_VERSION, FRAME_HELLO, 34, false, bytes), false, -EPROTO,
		      "did not greet");
	/* A stranger gets no more room than a greeting needs. */
	refuse_client(&none, bytes, hello(CONTROL_VERSION, FRAME_HELLO, 65, false, bytes), false, -EMSGSIZE,
		      "above the limit of 64");
	/* Half of it, and then nothing. */
	refuse_client(&none, bytes, hello(CONTROL_VERSION, FRAME_HELLO, 33, false, bytes) / 2, true, -ECONNRESET,
		      "closed");
}

static void test_bad_proofs(void **state) {
	uint8_t proof[CONTROL_MAC + 1] = { 0 };
	size_t n = hello(CONTROL_VERSION, FRAME_HELLO, 33, true, bytes);

	(void) state;
	refuse_client(&right, bytes, n + frame_bytes(CONTROL_VERSION, FRAME_PROOF, proof, CONTROL_MAC, NULL, false, 0,
						     bytes + n), false, -EACCES, "wrong token");
	/* No proof at all is not an empty right one, and an empty one is none either. */
	refuse_client(&right, bytes, n, true, -ECONNRESET, "closed");
	refuse_client(&right, bytes, n + frame_bytes(CONTROL_VERSION, FRAME_PROOF, proof, 0, NULL, false, 0, bytes + n),
		      false, -EPROTO, "did not greet");
	refuse_client(&right, bytes, n + frame_bytes(CONTROL_VERSION, FRAME_PROOF, proof, CONTROL_MAC - 1, NULL, false,
						     0, bytes + n), false, -EPROTO, "did not greet");
	refuse_client(&right, bytes, n + frame_bytes(CONTROL_VERSION, FRAME_JOB, proof, CONTROL_MAC, NULL, false, 0,
						     bytes + n), false, -EPROTO, "did not greet");
}

/* The client is told why before the connection ends. */
static void test_the_refused_hear_why(void **state) {
	uint8_t proof[CONTROL_MAC] = { 0 };
	size_t n = hello(CONTROL_VERSION, FRAME_HELLO, 33, true, bytes), got = 0;
	struct control *c;
	ssize_t r;

	(void) state;
	n += frame_bytes(CONTROL_VERSION, FRAME_PROOF, proof, CONTROL_MAC, NULL, false, 0, bytes + n);
	assert_int_equal(send(p.ours, bytes, n, MSG_NOSIGNAL), n);
	assert_int_equal(pair_greet(p.theirs, &right, &c), -EACCES);
	p.theirs = -1;
	while ((r = recv(p.ours, bytes + got, sizeof(bytes) - 1 - got, 0)) > 0)
		got += (size_t) r;
	assert_non_null(memmem(bytes, got, "wrong token", 11));
}

static void test_without_a_token_only_loopback_is_served(void **state) {
	int two[2];
	struct control *c = NULL;

	(void) state;
	/* A peer whose address is no loopback address: here one of another family. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, two), 0);
	assert_int_equal(pair_greet(two[0], &none, &c), -EPERM);
	assert_non_null(strstr(failure_text(), "only loopback"));
	(void) close(two[1]);
}

/* As scanners of ports do: it has no address any more, and is no news. */
static void test_a_client_that_is_gone_is_not_said_to_be_refused(void **state) {
	struct linger reset = { .l_onoff = 1 };
	struct control *c = NULL;

	(void) state;
	assert_int_equal(setsockopt(p.ours, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	p.ours = close_fd(p.ours);
	assert_int_equal(pair_greet(p.theirs, &none, &c), -ECONNRESET);
	p.theirs = -1;
	assert_string_equal(failure_text(), "the client was gone at once");
}

/* The client's half against a server that answers `data`, whatever is said to it. */
static void refuse_server(const struct token *token, const void *data, size_t length, int error, const char *reason) {
	struct control *c = NULL;
	uint16_t port;
	int listener = pair_listen(&port), status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		uint8_t sink[4096];
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		(void) send(fd, data, length, MSG_NOSIGNAL);
		while (recv(fd, sink, sizeof(sink), 0) > 0)
			;
		_exit(0);
	}
	(void) close(listener);
	failure_reset();
	assert_int_equal(control_connect("127.0.0.1", port, NULL, token, 300 * NSEC_PER_MSEC, &c), error);
	assert_null(c);
	if (!strstr(failure_text(), reason))
		fail_msg("\"%s\" does not say: %s", failure_text(), reason);
	assert_int_equal(failure_code(), EXIT_PEER);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_bad_servers(void **state) {
	uint8_t proof[CONTROL_MAC] = { 0 };
	size_t n;

	(void) state;
	refuse_server(&none, "", 0, -ETIMEDOUT, "in time");
	refuse_server(&none, "SSH-2.0-OpenSSH_9.2p1\r\n", 23, -EPROTO, "another program");
	refuse_server(&none, bytes, hello(CONTROL_VERSION + 8, FRAME_CHALLENGE, 33, false, bytes), -EPROTONOSUPPORT,
		      "version 10");
	refuse_server(&none, bytes, hello(CONTROL_VERSION, FRAME_WELCOME, 33, false, bytes), -EPROTO, "did not greet");
	refuse_server(&none, bytes, hello(CONTROL_VERSION, FRAME_CHALLENGE, 33, true, bytes), -EACCES,
		      "requires a token");
	refuse_server(&right, bytes, hello(CONTROL_VERSION, FRAME_CHALLENGE, 33, false, bytes), -EACCES, "no token");
	/* A server that welcomes whoever comes, without knowing the token. */
	n = hello(CONTROL_VERSION, FRAME_CHALLENGE, 33, true, bytes);
	n += frame_bytes(CONTROL_VERSION, FRAME_WELCOME, proof, CONTROL_MAC, NULL, true, 0, bytes + n);
	refuse_server(&right, bytes, n, -EACCES, "has another token");
	n = hello(CONTROL_VERSION, FRAME_CHALLENGE, 33, true, bytes);
	n += frame_bytes(CONTROL_VERSION, FRAME_WELCOME, proof, 0, NULL, true, 0, bytes + n);
	refuse_server(&right, bytes, n, -EPROTO, "did not greet");
	n = frame_bytes(CONTROL_VERSION, FRAME_ERROR, "{\"message\":\"full\"}", 18, NULL, true, 0, bytes);
	refuse_server(&none, bytes, n, -EREMOTEIO, "says: full");
	/* It has proved nothing, and its words go to a terminal. */
	n = frame_bytes(CONTROL_VERSION, FRAME_ERROR, "{\"message\":\"\\u001b[31mPASS\"}", 28, NULL, true, 0, bytes);
	refuse_server(&right, bytes, n, -EREMOTEIO, "says: \\x1b[31mPASS");
	n = frame_bytes(CONTROL_VERSION, FRAME_ERROR, "nonsense", 8, NULL, true, 0, bytes);
	refuse_server(&none, bytes, n, -EREMOTEIO, "no reason");
}

static void test_no_listener(void **state) {
	struct control *c = NULL;
	uint16_t port;

	(void) state;
	(void) close(pair_listen(&port));
	assert_int_equal(control_connect("127.0.0.1", port, NULL, &none, NSEC_PER_SEC, &c), -ECONNREFUSED);
	assert_non_null(strstr(failure_text(), "perch serve"));
	assert_int_equal(failure_code(), EXIT_PEER);
	assert_null(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_the_same_token),
		TEST(test_no_token_on_both_sides),
		TEST(test_different_tokens),
		TEST(test_a_token_on_one_side),
		TEST(test_strangers),
		TEST(test_bad_hellos),
		TEST(test_bad_proofs),
		TEST(test_the_refused_hear_why),
		TEST(test_without_a_token_only_loopback_is_served),
		TEST(test_a_client_that_is_gone_is_not_said_to_be_refused),
		TEST(test_bad_servers),
		TEST(test_no_listener),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
