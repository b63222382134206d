/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: connections that have proved nothing cannot keep out those that will: they have few places, the crowd of an
 * address costs that address only, silence goes before speech, and each has its time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "pair.h"
#include "control/strangers.h"

static struct strangers s;
static char token_file[] = "/tmp/perch-test-token-XXXXXX";
static int listener;
static uint16_t port;

static int set_up(void **state) {
	(void) state;
	listener = pair_listen(&port);
	return 0;
}

static int tear_down(void **state) {
	(void) state;
	strangers_close(&s);
	memset(&s, 0, sizeof(s));
	return close(listener);
}

/* A client from 127.0.0.`host`, which is here as soon as it is there. Answers its end. */
static int come_from(uint8_t host) {
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host) };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *) &from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof(to)), 0);
	strangers_admit(&s, accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), true);
	return fd;
}

/* Each that has sent something is heard once. Answers who has proved itself, or NULL. */
static struct control *hear_all(void) {
	struct pollfd p[STRANGERS_MAX];
	unsigned places[STRANGERS_MAX];
	size_t n = strangers_poll(&s, p, places);
	struct control *proved = NULL;

	(void) poll(p, n, 0);
	for (size_t i = 0; i < n; i++)
		if (p[i].revents & POLLIN && !proved)
			proved = strangers_hear(&s, places[i], token_file);
	return proved;
}

static void greet(int fd) {
	uint8_t hello[CONTROL_NONCE + 1] = { [CONTROL_NONCE] = 1 }, frame[128];
	size_t n = frame_bytes(CONTROL_VERSION, FRAME_HELLO, hello, sizeof(hello), NULL, false, 0, frame);

	assert_int_equal(send(fd, frame, n, MSG_NOSIGNAL), n);
	assert_null(hear_all());
}

/* What the listener has sent to this end; empty: it waits. */
static const char *told(int fd) {
	static char text[1024];
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[MAX(n, 0)] = '\0';
	return n > CONTROL_HEADER ? text + CONTROL_HEADER : "";
}

static bool is_here(int fd) {
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

static void test_one_that_knows_the_token(void **state) {
	const struct token token = { .length = 16, .bytes = "0123456789abcdef" };
	struct hello mine = { .has_token = 1 }, theirs;
	uint8_t proof[CONTROL_MAC], frame[128], heard[CONTROL_HEADER + sizeof(theirs)];
	int fd = come_from(1);
	struct control *c;
	size_t n;

	(void) state;
	n = frame_bytes(CONTROL_VERSION, FRAME_HELLO, &mine, sizeof(mine), NULL, false, 0, frame);
	/* byte by byte: what is half here is waited for */
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(send(fd, frame + i, 1, 0), 1);
		assert_null(hear_all());
	}
	assert_int_equal(recv(fd, heard, sizeof(heard), 0), sizeof(heard));
	memcpy(&theirs, heard + CONTROL_HEADER, sizeof(theirs));
	auth_proof(&token, false, mine.nonce, theirs.nonce, proof);
	n = frame_bytes(CONTROL_VERSION, FRAME_PROOF, proof, sizeof(proof), NULL, false, 0, frame);
	assert_int_equal(send(fd, frame, n, 0), n);
	c = hear_all();
	assert_non_null(c);
	assert_true(c->keyed);
	assert_int_equal(s.n, 0);
	(void) control_close(c);
	(void) close(fd);
}

static void test_silence_goes_before_speech(void **state) {
	int first = come_from(1), crowd[STRANGERS_MAX];

	(void) state;
	greet(first);
	(void) told(first);
	for (size_t i = 0; i < STRANGERS_MAX; i++)
		crowd[i] = come_from(1);
	assert_int_equal(s.n, STRANGERS_MAX);
	assert_true(is_here(first));
	assert_non_null(strstr(told(crowd[0]), "had to go"));
	for (size_t i = 1; i < STRANGERS_MAX; i++)
		assert_true(is_here(crowd[i]));
	for (size_t i = 0; i < STRANGERS_MAX; i++)
		(void) close(crowd[i]);
	(void) close(first);
}

/* Even where the crowd speaks, and the other does not. */
static void test_a_crowd_costs_its_own_address(void **state) {
	int one = come_from(2), crowd[2 * STRANGERS_MAX];

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(crowd); i++) {
		crowd[i] = come_from(1);
		greet(crowd[i]);
	}
	assert_int_equal(s.n, STRANGERS_MAX);
	assert_true(is_here(one));
	for (size_t i = 0; i < ELEMENTSOF(crowd); i++) {
		(void) told(crowd[i]); /* the challenge, and what came behind it */
		assert_int_equal(is_here(crowd[i]), i > STRANGERS_MAX);
		(void) close(crowd[i]);
	}
	(void) close(one);
}

static void test_each_has_its_time(void **state) {
	int early = come_from(1), late = come_from(1);

	(void) state;
	assert_true(strangers_deadline(&s) > monotonic_ns());
	strangers_expire(&s);
	assert_int_equal(s.n, 2);
	for (size_t i = 0; i < STRANGERS_MAX; i++)
		if (s.places[i].greeting.control && s.places[i].since_ns < monotonic_ns()) {
			s.places[i].since_ns -= STRANGER_NS;
			break;
		}
	assert_true(strangers_deadline(&s) <= monotonic_ns());
	strangers_expire(&s);
	assert_int_equal(s.n, 1);
	assert_non_null(strstr(told(early), "did not greet within 3 s"));
	assert_true(is_here(late));
	(void) close(early);
	(void) close(late);
}

/* What a flood makes us say is bounded; the rest is counted. */
static void test_a_flood_is_not_a_flood_of_words(void **state) {
	int saved = dup(STDERR_FILENO), two[2];
	char text[8192] = { 0 };
	size_t lines = 0;

	(void) state;
	assert_int_equal(pipe2(two, O_CLOEXEC), 0);
	(void) dup2(two[1], STDERR_FILENO);
	for (size_t i = 0; i < 3 * STRANGERS_LINES; i++) {
		int fd = come_from(1);

		(void) send(fd, "GET / HTTP/1.0\r\n\r\n", 18, 0);
		(void) hear_all();
		(void) close(fd);
	}
	s.minute_ns -= 60 * NSEC_PER_SEC;
	int fd = come_from(1);

	(void) send(fd, "GET / HTTP/1.0\r\n\r\n", 18, 0);
	(void) hear_all();
	(void) close(fd);
	(void) dup2(saved, STDERR_FILENO);
	(void) close(saved);
	(void) close(two[1]);
	assert_true(read(two[0], text, sizeof(text) - 1) > 0);
	(void) close(two[0]);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, STRANGERS_LINES + 2);
	assert_non_null(strstr(text, "refused 20 more connections"));
}

/* Why is said here, and not to a stranger. */
static void test_a_token_that_cannot_be_read(void **state) {
	int fd = come_from(1);
	uint8_t frame[128] = { 'P' };

	(void) state;
	assert_int_equal(chmod(token_file, 0644), 0); /* which is refused */
	assert_int_equal(send(fd, frame, 1, 0), 1);
	assert_null(hear_all());
	assert_int_equal(chmod(token_file, 0600), 0);
	assert_int_equal(s.n, 0);
	assert_string_equal(told(fd), "");
	assert_false(is_here(fd));
	(void) close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_one_that_knows_the_token),
		TEST(test_silence_goes_before_speech),
		TEST(test_a_crowd_costs_its_own_address),
		TEST(test_each_has_its_time),
		TEST(test_a_flood_is_not_a_flood_of_words),
		TEST(test_a_token_that_cannot_be_read),
	};
	int fd = mkstemp(token_file), failed;

	if (fd < 0 || write(fd, "0123456789abcdef", 16) != 16)
		return 1;
	(void) close(fd);
	failed = cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
	(void) unlink(token_file);
	return failed;
}
