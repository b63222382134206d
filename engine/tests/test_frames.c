/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: a frame is taken only as it was sent, whole, once, in its place and from the other side;
 * anything else is refused with the reason, within the deadline.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "pair.h"

enum { FRAME_BYTES = CONTROL_HEADER + CONTROL_FRAME_MAX + CONTROL_MAC + 16 };

static const uint8_t key[CONTROL_MAC] = { 0xa5, 0x5a, 1, 2, 3 };
static uint8_t bytes[FRAME_BYTES];
static struct control c;
static int peer; /* the other end of c's connection */

static int set_up(void **state) {
	struct pair p = pair_open();

	(void) state;
	failure_reset();
	peer = p.ours;
	/* The server's end, past the handshake. */
	c = (struct control) { .fd = p.theirs, .server = true, .keyed = true, .timeout_ns = NSEC_PER_SEC,
			       .peer_name = "peer" };
	memcpy(c.key, key, sizeof(key));
	return 0;
}

static int tear_down(void **state) {
	(void) state;
	c.fd = close_fd(c.fd);
	peer = close_fd(peer);
	return 0;
}

static void put(const void *data, size_t length) {
	assert_int_equal(send(peer, data, length, MSG_NOSIGNAL), length);
}

static void put_frame(unsigned type, const char *payload, bool from_server, uint64_t number) {
	put(bytes, frame_bytes(CONTROL_VERSION, type, payload, strlen(payload), c.keyed ? key : NULL, from_server,
			       number, bytes));
}

static void accept_frame(enum frame_type expected) {
	enum frame_type type = FRAME_MAX;
	json_t *payload = NULL;

	assert_int_equal(control_receive(&c, NSEC_PER_SEC, &type, &payload), 0);
	assert_int_equal(type, expected);
	assert_true(json_is_object(payload));
	json_decref(payload);
}

/* The outputs stay as they were, and the reason is said. */
static void refuse_frame(int error, const char *reason) {
	enum frame_type type = FRAME_MAX;
	json_t *payload = NULL;

	failure_reset();
	assert_int_equal(control_receive(&c, 100 * NSEC_PER_MSEC, &type, &payload), error);
	assert_int_equal(type, FRAME_MAX);
	assert_null(payload);
	if (!strstr(failure_text(), reason))
		fail_msg("\"%s\" does not say: %s", failure_text(), reason);
	assert_int_equal(failure_code(), EXIT_PEER);
}

static void test_frames_pass_in_order(void **state) {
	(void) state;
	for (uint64_t i = 0; i < 5; i++)
		put_frame(FRAME_JOB, "{\"a\":1}", false, i);
	for (int i = 0; i < 5; i++)
		accept_frame(FRAME_JOB);
}

static void test_both_ends_agree(void **state) {
	struct control other = { .fd = peer, .keyed = true, .timeout_ns = NSEC_PER_SEC, .peer_name = "server" };
	enum frame_type type;
	json_t *payload;

	(void) state;
	memcpy(other.key, key, sizeof(key));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(control_send(&other, FRAME_START, json_pack("{s:i}", "count", i)), 0);
		assert_int_equal(control_expect(&c, FRAME_START, NSEC_PER_SEC, &payload), 0);
		assert_int_equal(json_integer_value(json_object_get(payload, "count")), i);
		json_decref(payload);
		assert_int_equal(control_send(&c, FRAME_STARTED, NULL), 0);
		assert_int_equal(control_receive(&other, NSEC_PER_SEC, &type, NULL), 0);
		assert_int_equal(type, FRAME_STARTED);
	}
}

/* No byte of a frame may differ: header, payload or code. */
static void test_every_altered_byte_is_refused(void **state) {
	size_t length = frame_bytes(CONTROL_VERSION, FRAME_JOB, "{\"a\":1}", 7, key, false, 0, bytes);

	for (size_t i = 0; i < length; i++) {
		uint8_t copy[256];
		enum frame_type type = FRAME_MAX;

		memcpy(copy, bytes, length);
		copy[i] ^= 1;
		put(copy, length);
		failure_reset();
		assert_true(control_receive(&c, 50 * NSEC_PER_MSEC, &type, NULL) < 0);
		assert_int_equal(type, FRAME_MAX);
		(void) tear_down(state);
		(void) set_up(state);
	}
}

static void test_altered_payload_is_named(void **state) {
	size_t length = frame_bytes(CONTROL_VERSION, FRAME_JOB, "{}", 2, key, false, 0, bytes);

	(void) state;
	bytes[length - 1] ^= 1;
	put(bytes, length);
	refuse_frame(-EBADMSG, "altered");
}

static void test_replayed(void **state) {
	(void) state;
	put_frame(FRAME_JOB, "{}", false, 0);
	put_frame(FRAME_JOB, "{}", false, 0);
	accept_frame(FRAME_JOB);
	refuse_frame(-EBADMSG, "altered");
}

static void test_reordered(void **state) {
	(void) state;
	put_frame(FRAME_START, "{}", false, 1);
	put_frame(FRAME_JOB, "{}", false, 0);
	refuse_frame(-EBADMSG, "altered");
}

static void test_left_out(void **state) {
	(void) state;
	put_frame(FRAME_JOB, "{}", false, 0);
	put_frame(FRAME_DONE, "{}", false, 2);
	accept_frame(FRAME_JOB);
	refuse_frame(-EBADMSG, "altered");
}

static void test_reflected(void **state) {
	(void) state;
	put_frame(FRAME_JOB, "{}", true, 0);
	refuse_frame(-EBADMSG, "altered");
}

static void test_without_a_code(void **state) {
	(void) state;
	put(bytes, frame_bytes(CONTROL_VERSION, FRAME_JOB, "{}", 2, NULL, false, 0, bytes));
	refuse_frame(-ETIMEDOUT, "--timeout");
}

static void test_oversize(void **state) {
	char *payload = malloc(CONTROL_FRAME_MAX + 1);

	(void) state;
	assert_non_null(payload);
	/* The largest is taken ... */
	memset(payload, ' ', CONTROL_FRAME_MAX + 1);
	memcpy(payload, "{}", 2);
	size_t length = frame_bytes(CONTROL_VERSION, FRAME_JOB, payload, CONTROL_FRAME_MAX, key, false, 0, bytes);
	put(bytes, length);
	accept_frame(FRAME_JOB);
	/* ... and one more byte is refused by its header alone: nothing else is sent here. */
	(void) frame_bytes(CONTROL_VERSION, FRAME_JOB, payload, CONTROL_FRAME_MAX + 1, NULL, false, 1, bytes);
	put(bytes, CONTROL_HEADER);
	refuse_frame(-EMSGSIZE, "above the limit of 65536");
	free(payload);
}

static void test_bad_headers(void **state) {
	static const unsigned types[] = { 0, FRAME_MAX, 0xffff };

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		put_frame(types[i], "{}", false, 0);
		refuse_frame(-EPROTO, "does not use perch's control protocol");
		(void) tear_down(state);
		(void) set_up(state);
	}
	put(bytes, frame_bytes(CONTROL_VERSION + 1, FRAME_JOB, "{}", 2, key, false, 0, bytes));
	refuse_frame(-EPROTONOSUPPORT, "version 3, this perch has 2");
	(void) tear_down(state);
	(void) set_up(state);
	put("GET / HTTP/1.1\r\n\r\n", 18);
	refuse_frame(-EPROTO, "another program on that port");
}

static void test_payloads_that_are_no_object(void **state) {
	static const char *const payloads[] = { "", "[]", "1", "\"x\"", "null", "{", "{}x", "{\"a\":1,\"a\":2}",
						"{\"a\":\"\xff\"}", "{\"a\":\"\\u0000\"}" };

	for (size_t i = 0; i < ELEMENTSOF(payloads); i++) {
		put_frame(FRAME_JOB, payloads[i], false, 0);
		refuse_frame(-EPROTO, "not a JSON object");
		(void) tear_down(state);
		(void) set_up(state);
	}
}

/* Deep nesting must not use up the stack. */
static void test_deep_payload(void **state) {
	char *payload = malloc(CONTROL_FRAME_MAX);

	(void) state;
	assert_non_null(payload);
	memset(payload, '[', CONTROL_FRAME_MAX);
	put(bytes, frame_bytes(CONTROL_VERSION, FRAME_JOB, payload, CONTROL_FRAME_MAX, key, false, 0, bytes));
	refuse_frame(-EPROTO, "not a JSON object");
	free(payload);
}

static void test_truncated(void **state) {
	size_t length = frame_bytes(CONTROL_VERSION, FRAME_JOB, "{}", 2, key, false, 0, bytes);

	for (size_t n = 0; n < length; n++) {
		put(bytes, n);
		(void) shutdown(peer, SHUT_WR);
		refuse_frame(-ECONNRESET, "the connection was closed");
		(void) tear_down(state);
		(void) set_up(state);
	}
}

/* One deadline for the whole frame: bytes that trickle in do not prolong it. */
static void test_slow(void **state) {
	size_t length = frame_bytes(CONTROL_VERSION, FRAME_JOB, "{}", 2, key, false, 0, bytes);
	uint64_t begin = monotonic_ns(), took;
	pid_t pid = fork();

	(void) state;
	assert_true(pid >= 0);
	if (pid == 0) {
		for (size_t i = 0; i < length; i++) {
			(void) send(peer, bytes + i, 1, MSG_NOSIGNAL);
			(void) usleep(20 * 1000);
		}
		_exit(0);
	}
	refuse_frame(-ETIMEDOUT, "did not answer in time");
	took = monotonic_ns() - begin;
	(void) kill(pid, SIGKILL);
	(void) waitpid(pid, NULL, 0);
	/* 100 ms were allowed, and the whole frame would take 920 ms. */
	assert_true(took >= 100 * NSEC_PER_MSEC && took < 800 * NSEC_PER_MSEC);
}

static void test_a_peer_that_reads_nothing(void **state) {
	char *text = malloc(CONTROL_FRAME_MAX - 100);
	int r = 0;

	(void) state;
	assert_non_null(text);
	memset(text, 'x', CONTROL_FRAME_MAX - 101);
	text[CONTROL_FRAME_MAX - 101] = '\0';
	c.timeout_ns = 50 * NSEC_PER_MSEC;
	/* Until the buffers of both sockets are full: some MB at most. */
	for (int i = 0; i < 1000 && r == 0; i++)
		r = control_send(&c, FRAME_RESULT, json_pack("{s:s}", "text", text));
	assert_int_equal(r, -ETIMEDOUT);
	free(text);
}

static void test_the_peer_gives_up(void **state) {
	(void) state;
	put_frame(FRAME_ERROR, "{\"code\":3,\"message\":\"no such device\"}", false, 0);
	refuse_frame(-EREMOTEIO, "peer says: no such device");
}

static void test_words_of_the_peer_are_escaped(void **state) {
	json_t *payload;

	(void) state;
	put_frame(FRAME_IDENTITY, "{\"host\":\"\\u001b[2Jbeta\",\"more\":[{\"name\":\"\\u202egpj\"}]}", false, 0);
	assert_int_equal(control_expect(&c, FRAME_IDENTITY, NSEC_PER_SEC, &payload), 0);
	assert_string_equal(json_string_value(json_object_get(payload, "host")), "\\x1b[2Jbeta");
	assert_string_equal(json_string_value(json_object_get(
		json_array_get(json_object_get(payload, "more"), 0), "name")), "\\u202egpj");
	json_decref(payload);
	put_frame(FRAME_ERROR, "{\"code\":4,\"message\":\"\\u001b]0;owned\\u0007\"}", false, 1);
	refuse_frame(-EREMOTEIO, "says: \\x1b]0;owned\\x07");
}

static void test_the_peer_gives_up_without_words(void **state) {
	static const char *const payloads[] = { "{}", "{\"code\":\"x\"}", "{\"message\":3}" };

	for (size_t i = 0; i < ELEMENTSOF(payloads); i++) {
		put_frame(FRAME_ERROR, payloads[i], false, 0);
		refuse_frame(-EREMOTEIO, "peer says: ");
		(void) tear_down(state);
		(void) set_up(state);
	}
}

static void test_another_frame_than_expected(void **state) {
	json_t *payload = NULL;

	(void) state;
	put_frame(FRAME_DONE, "{}", false, 0);
	assert_int_equal(control_expect(&c, FRAME_START, NSEC_PER_SEC, &payload), -EPROTO);
	assert_null(payload);
}

static void test_pending(void **state) {
	(void) state;
	assert_false(control_pending(&c));
	put_frame(FRAME_DONE, "{}", false, 0);
	assert_true(control_pending(&c));
	accept_frame(FRAME_DONE);
	assert_false(control_pending(&c));
	(void) shutdown(peer, SHUT_WR);
	assert_true(control_pending(&c)); /* its end is news too */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_frames_pass_in_order),
		TEST(test_both_ends_agree),
		TEST(test_every_altered_byte_is_refused),
		TEST(test_altered_payload_is_named),
		TEST(test_replayed),
		TEST(test_reordered),
		TEST(test_left_out),
		TEST(test_reflected),
		TEST(test_without_a_code),
		TEST(test_oversize),
		TEST(test_bad_headers),
		TEST(test_payloads_that_are_no_object),
		TEST(test_deep_payload),
		TEST(test_truncated),
		TEST(test_slow),
		TEST(test_a_peer_that_reads_nothing),
		TEST(test_the_peer_gives_up),
		TEST(test_words_of_the_peer_are_escaped),
		TEST(test_the_peer_gives_up_without_words),
		TEST(test_another_frame_than_expected),
		TEST(test_pending),
	};

	return cmocka_run_group_tests_name("frames", tests, NULL, NULL);
}
