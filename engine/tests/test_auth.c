/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: proofs, key and frame codes are what control.h says, byte by byte, held against HMAC-SHA256 computed by
 * Python's hmac; and a token file is read whole or refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "control/control.h"
#include "host/netdev.h"

static const struct token token = { .length = 32, .bytes = "0123456789abcdef0123456789abcdef" };
static uint8_t client_nonce[CONTROL_NONCE], server_nonce[CONTROL_NONCE];

static int set_up(void **state) {
	(void) state;
	for (uint8_t i = 0; i < CONTROL_NONCE; i++) {
		client_nonce[i] = i;
		server_nonce[i] = (uint8_t) (0x80 + i);
	}
	return 0;
}

static void assert_hex(const uint8_t *bytes, const char *hex) {
	char text[2 * CONTROL_MAC + 1];

	for (size_t i = 0; i < CONTROL_MAC; i++)
		(void) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	assert_string_equal(text, hex);
}

/* hmac.new(token, b"perch/1 client".ljust(16, b"\0") + bytes(range(32)) + bytes(range(128, 160)), "sha256") */
static void test_proofs_and_key(void **state) {
	uint8_t mac[CONTROL_MAC];

	(void) state;
	auth_proof(&token, false, client_nonce, server_nonce, mac);
	assert_hex(mac, "44631cf00b135efe9d00b3815a838054079a6687127f1f0f2272115e25155a37");
	auth_proof(&token, true, client_nonce, server_nonce, mac);
	assert_hex(mac, "61079345c2552fb4b05f1623d85f92788b95fe0061652cc191ef7eede4e60201");
	auth_key(&token, client_nonce, server_nonce, mac);
	assert_hex(mac, "5ae535ef067dcf7e275ba633d214a7d809185af2a30a922f47b101b32b732566");
}

static void code_frame(bool from_server, uint64_t number, const char *payload, uint8_t *ret) {
	uint8_t key[CONTROL_MAC], header[CONTROL_HEADER] = { 'P', 'R', 'C', 'H', 0, 1, 0, 7, 0, 0, 0, 0 };

	header[11] = (uint8_t) strlen(payload);
	auth_key(&token, client_nonce, server_nonce, key);
	auth_frame(key, from_server, number, header, (const uint8_t *) payload, strlen(payload), ret);
}

/*
 * hmac.new(key, bytes([from_server]) + struct.pack(">Q", number) + header +
 *          hmac.new(key, payload, "sha256").digest(), "sha256")
 */
static void test_frames(void **state) {
	uint8_t mac[CONTROL_MAC];

	(void) state;
	code_frame(false, 0, "{}", mac);
	assert_hex(mac, "f71c2703c883b093de82781976a0b271bd2d336adfa7ec78390f3a92c6a562dd");
	code_frame(true, 0, "{}", mac);
	assert_hex(mac, "35a74dbe9f941ec0cb67aa38e83971d122a2468880625461964e2e6c7f2df950");
	code_frame(false, 1, "{}", mac);
	assert_hex(mac, "352b29d51dd1ca0771fb5502cd67abc87ae02efcc662cc97c8f51096b5236020");
	code_frame(false, UINT64_C(1) << 40, "{}", mac);
	assert_hex(mac, "55cae04f1436f8c5708f9023c05783407430204f5e93faf23d0aa144ad25d43d");
	code_frame(false, 0, "", mac);
	assert_hex(mac, "566b8dc8943f9060cb0438809c281bcb506deed7c807d661665e1bd33fa98181");
}

static void test_equal(void **state) {
	uint8_t a[CONTROL_MAC] = { 1, 2, 3 }, b[CONTROL_MAC];

	(void) state;
	for (size_t i = 0; i < CONTROL_MAC; i++) {
		memcpy(b, a, sizeof(b));
		assert_true(auth_equal(a, b));
		b[i] ^= 0x80;
		assert_false(auth_equal(a, b));
	}
}

static void test_nonces_differ(void **state) {
	uint8_t a[CONTROL_NONCE] = { 0 }, b[CONTROL_NONCE] = { 0 };

	(void) state;
	assert_int_equal(auth_nonce(a), 0);
	assert_int_equal(auth_nonce(b), 0);
	assert_memory_not_equal(a, b, sizeof(a));
}

/* Writes a token file of `text` with `mode`, reads it, and removes it. */
static int read_back(const char *text, size_t length, mode_t mode, struct token *ret) {
	char path[] = "/tmp/perch-test-token-XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, length), length);
	assert_int_equal(fchmod(fd, mode), 0);
	(void) close(fd);
	failure_reset();
	r = token_read(path, ret);
	/* Whatever is wrong is said with the file's name. */
	assert_true(r == 0 || strstr(failure_text(), path));
	assert_true(r == 0 || failure_code() == EXIT_HOST);
	(void) unlink(path);
	return r;
}

static void test_token_files(void **state) {
	static char longest[CONTROL_TOKEN_MAX + 1];
	struct token t;

	(void) state;
	assert_int_equal(read_back("0123456789abcdef", 16, 0600, &t), 0);
	assert_int_equal(t.length, 16);
	assert_int_equal(read_back("0123456789abcdef\r\n", 18, 0400, &t), 0);
	assert_int_equal(t.length, 16);
	/* A newline is no part of a token, and so does not make up for a missing byte. */
	assert_int_equal(read_back("0123456789abcde\n", 16, 0600, &t), -EINVAL);
	assert_int_equal(read_back("", 0, 0600, &t), -EINVAL);
	assert_int_equal(t.length, 16); /* untouched by failures */
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(read_back(longest, CONTROL_TOKEN_MAX - 1, 0600, &t), 0);
	assert_int_equal(t.length, CONTROL_TOKEN_MAX - 1);
	assert_int_equal(read_back(longest, CONTROL_TOKEN_MAX, 0600, &t), -EINVAL);
	assert_int_equal(read_back(longest, CONTROL_TOKEN_MAX + 1, 0600, &t), -EINVAL);
	for (mode_t others = 01; others <= 077; others <<= 1)
		assert_int_equal(read_back("0123456789abcdef", 16, 0600 | others, &t), -EPERM);
}

/* Root reads what it likes; so another owner's file is refused for what its owner may do with it. */
static void test_the_owner_of_a_token_file(void **state) {
	char path[] = "/tmp/perch-test-token-XXXXXX";
	int fd = mkstemp(path);
	struct token t;

	(void) state;
	assert_int_equal(write(fd, "0123456789abcdef", 16), 16);
	(void) close(fd);
	if (chown(path, 65534, (gid_t) -1) < 0) {
		(void) unlink(path);
		skip(); /* only root gives files away */
	}
	failure_reset();
	assert_int_equal(token_read(path, &t), -EPERM);
	assert_non_null(strstr(failure_text(), "belongs to user 65534"));
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(token_read(path, &t), 0);
	assert_int_equal(seteuid(0), 0);
	(void) unlink(path);
}

static void test_a_process_with_a_token_leaves_no_core(void **state) {
	struct rlimit core;
	struct token t;

	(void) state;
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	assert_int_equal(read_back("0123456789abcdef", 16, 0600, &t), 0);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
	assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
	assert_int_equal(core.rlim_max, 0);
	token_forget(&t);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
	assert_int_equal(t.length, 0);
	assert_int_equal(t.bytes[0], 0);
}

static void test_no_token(void **state) {
	struct token t = { .length = 5 };

	(void) state;
	assert_int_equal(token_read(NULL, &t), 0);
	assert_int_equal(t.length, 0);
	t.length = 5;
	assert_int_equal(token_read("", &t), 0);
	assert_int_equal(t.length, 0);
	failure_reset();
	assert_int_equal(token_read("/nonexistent/token", &t), -ENOENT);
	assert_int_equal(failure_code(), EXIT_HOST);
}

/* A server reads it again for each stranger; a pipe gives it once, or is waited for. */
static void test_a_token_lies_in_a_regular_file(void **state) {
	char folder[] = "/tmp/perch-test-token-XXXXXX", pipe[64];
	struct token t;

	(void) state;
	failure_reset();
	assert_int_equal(token_read("/tmp", &t), -EINVAL);
	assert_non_null(mkdtemp(folder));
	(void) snprintf(pipe, sizeof(pipe), "%s/pipe", folder);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	failure_reset();
	assert_int_equal(token_read(pipe, &t), -EINVAL);
	assert_non_null(strstr(failure_text(), "is not a regular file"));
	(void) unlink(pipe);
	(void) rmdir(folder);
}

static void test_loopback(void **state) {
	static const struct {
		const char *text;
		bool loopback;
	} cases[] = {
		{ "127.0.0.1", true }, { "127.255.255.254", true }, { "128.0.0.1", false }, { "126.0.0.1", false },
		{ "0.0.0.0", false }, { "10.0.0.127", false }, { "::1", true }, { "::", false }, { "::2", false },
		{ "::ffff:127.0.0.1", true }, { "::ffff:10.0.0.1", false }, { "::127.0.0.1", false },
		{ "fe80::1", false },
	};
	struct sockaddr_storage unix_socket = { .ss_family = AF_UNIX };

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct sockaddr_storage a = { 0 };
		struct sockaddr_in *v4 = (struct sockaddr_in *) &a;
		struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) &a;

		a.ss_family = strchr(cases[i].text, ':') ? AF_INET6 : AF_INET;
		assert_int_equal(inet_pton(a.ss_family, cases[i].text,
					   a.ss_family == AF_INET ? (void *) &v4->sin_addr : &v6->sin6_addr), 1);
		assert_int_equal(address_is_loopback(&a), cases[i].loopback);
	}
	assert_false(address_is_loopback(&unix_socket));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proofs_and_key),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_nonces_differ),
		cmocka_unit_test(test_token_files),
		cmocka_unit_test(test_the_owner_of_a_token_file),
		cmocka_unit_test(test_a_process_with_a_token_leaves_no_core),
		cmocka_unit_test(test_no_token),
		cmocka_unit_test(test_a_token_lies_in_a_regular_file),
		cmocka_unit_test(test_loopback),
	};

	return cmocka_run_group_tests_name("auth", tests, set_up, NULL);
}
