/* SPDX-License-Identifier: Apache-2.0 */
/* Who the two ends are to each other: a shared token, proved by both sides without sending it. */
#include <endian.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "control.h"

/* Of this process before it held a token; a program with capabilities of its own never was (prctl(2)). */
static bool was_dumpable;

/* While it holds the token: no core file, and its memory is shown to root only (prctl(2), core(5)). */
static void keep_out_of_cores(void) {
	const struct rlimit none = { 0 };

	was_dumpable |= prctl(PR_GET_DUMPABLE) == 1;
	(void) prctl(PR_SET_DUMPABLE, 0);
	(void) setrlimit(RLIMIT_CORE, &none);
}

void token_forget(struct token *t) {
	explicit_bzero(t, sizeof(*t));
	/* libfabric's shm copies between two processes only where each may read the other (process_vm_readv(2)). */
	if (was_dumpable)
		(void) prctl(PR_SET_DUMPABLE, 1);
}

int token_read(const char *path, struct token *ret) {
	_cleanup_close_ int fd = -1;
	struct token t = { 0 };
	struct stat st;
	ssize_t n;

	if (!path || !path[0]) {
		*ret = t;
		return 0;
	}
	keep_out_of_cores();
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is not waited for */
	if (fd < 0 || fstat(fd, &st) < 0)
		return failure(-errno, EXIT_HOST, "cannot read the token file %s: %s", path, strerror(errno));
	/* A server reads it for each stranger, and a pipe gives it once. */
	if (!S_ISREG(st.st_mode))
		return failure(-EINVAL, EXIT_HOST, "the token file %s is not a regular file; write the token "
			       "into one", path);
	/* As ssh does with its files: root may read all, and another owner can change it at any time. */
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return failure(-EPERM, EXIT_HOST, "the token file %s belongs to user %u, neither you nor root; "
			       "`chown %u %s`", path, (unsigned) st.st_uid, (unsigned) geteuid(), path);
	/* As ssh does with keys: what others may read is no secret. */
	if (st.st_mode & 077)
		return failure(-EPERM, EXIT_HOST, "the token file %s may be read by others (mode %04o); `chmod 600 %s`",
			       path, (unsigned) st.st_mode & 07777, path);
	n = read(fd, t.bytes, sizeof(t.bytes));
	if (n < 0)
		return failure(-errno, EXIT_HOST, "cannot read the token file %s: %s", path, strerror(errno));
	/* Editors and echo end files with a newline, which nobody means. */
	while (n > 0 && (t.bytes[n - 1] == '\n' || t.bytes[n - 1] == '\r'))
		n--;
	if (n < CONTROL_TOKEN_MIN || n >= CONTROL_TOKEN_MAX)
		return failure(-EINVAL, EXIT_HOST, "the token in %s has %zd bytes; use %d to %d random ones, such as "
			       "`openssl rand -hex 32 > %s`", path, n, CONTROL_TOKEN_MIN, CONTROL_TOKEN_MAX - 1, path);
	t.length = (size_t) n;
	*ret = t;
	return 0;
}

static void hmac(const void *key, size_t key_length, const uint8_t *text, size_t length, uint8_t *ret) {
	unsigned n = CONTROL_MAC;

	/* HMAC() fails only when memory does; an all-zero result then matches no proof. */
	memset(ret, 0, CONTROL_MAC);
	(void) HMAC(EVP_sha256(), key, (int) key_length, text, length, ret, &n);
}

/* Label and nonces have fixed lengths, so no two different inputs give the same text. */
static void derive(const struct token *token, const char *label, const uint8_t *client_nonce,
		   const uint8_t *server_nonce, uint8_t *ret) {
	uint8_t text[16 + 2 * CONTROL_NONCE] = { 0 };

	memcpy(text, label, MIN(strlen(label), sizeof("perch/1 session")));
	memcpy(text + 16, client_nonce, CONTROL_NONCE);
	memcpy(text + 16 + CONTROL_NONCE, server_nonce, CONTROL_NONCE);
	hmac(token->bytes, token->length, text, sizeof(text), ret);
}

void auth_proof(const struct token *token, bool server, const uint8_t *client_nonce, const uint8_t *server_nonce,
		uint8_t *ret_mac) {
	derive(token, server ? "perch/1 server" : "perch/1 client", client_nonce, server_nonce, ret_mac);
}

void auth_key(const struct token *token, const uint8_t *client_nonce, const uint8_t *server_nonce, uint8_t *ret_key) {
	derive(token, "perch/1 session", client_nonce, server_nonce, ret_key);
}

void auth_frame(const uint8_t *key, bool from_server, uint64_t number, const uint8_t *header, const uint8_t *payload,
		size_t length, uint8_t *ret_mac) {
	uint8_t digest[CONTROL_MAC], text[1 + sizeof(uint64_t) + CONTROL_HEADER + CONTROL_MAC] = { from_server };
	uint64_t n = htobe64(number);

	/* Direction and number keep a frame from being reflected, repeated or left out. */
	memcpy(text + 1, &n, sizeof(n));
	memcpy(text + 1 + sizeof(n), header, CONTROL_HEADER);
	hmac(key, CONTROL_MAC, payload, length, digest);
	memcpy(text + 1 + sizeof(n) + CONTROL_HEADER, digest, sizeof(digest));
	hmac(key, CONTROL_MAC, text, sizeof(text), ret_mac);
}

bool auth_equal(const uint8_t *a, const uint8_t *b) {
	return CRYPTO_memcmp(a, b, CONTROL_MAC) == 0;
}

int auth_nonce(uint8_t *ret) {
	if (RAND_bytes(ret, CONTROL_NONCE) != 1)
		return failure(-EIO, EXIT_INTERNAL, "the random number generator gave nothing");
	return 0;
}
