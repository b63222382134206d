/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target of the control connection: what a stranger, a client with the right token,
 * or somebody between the two may send to a server. The first byte says who it is, the rest is what they say.
 */
#include "pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum mode {
	STRANGER,               /* bytes, to a server without a token */
	STRANGER_TO_TOKEN,      /* bytes, to a server with one */
	BETWEEN,                /* bytes, after the handshake of others */
	CLIENT,                 /* frames with right codes: type, length (two bytes), payload, and again */
	GREETED,                /* a right greeting without a token, then frames */
	MODE_MAX,
};

static const struct token token = { .length = 16, .bytes = "0123456789abcdef" };
static const uint8_t key[CONTROL_MAC] = { 1 };

static void put(int fd, const void *data, size_t length) {
	/* What does not fit into the socket's buffer (200 KB) is left out: an input is at most some KB. */
	(void) !send(fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void put_frames(int fd, const uint8_t *data, size_t size, bool keyed) {
	static uint8_t frame[CONTROL_HEADER + UINT16_MAX + CONTROL_MAC];

	for (uint64_t number = 0; size >= 3; number++) {
		size_t n = MIN(((size_t) data[1] << 8) + data[2], size - 3);

		put(fd, frame, frame_bytes(CONTROL_VERSION, data[0] % (FRAME_MAX + 1), data + 3, n, keyed ? key : NULL,
					   false, number, frame));
		data += 3 + n;
		size -= 3 + n;
	}
}

static void greet(int fd) {
	uint8_t hello[CONTROL_NONCE + 1] = { 0 }, frame[128];

	put(fd, frame, frame_bytes(CONTROL_VERSION, FRAME_HELLO, hello, sizeof(hello), NULL, false, 0, frame));
	put(fd, frame, frame_bytes(CONTROL_VERSION, FRAME_PROOF, NULL, 0, NULL, false, 0, frame));
}

static void receive_all(struct control *c) {
	enum frame_type type;
	json_t *payload;

	while (control_receive(c, NSEC_PER_SEC, &type, &payload) == 0) {
		if (type == 0 || type >= FRAME_MAX || type == FRAME_ERROR || !json_is_object(payload))
			abort();
		json_decref(payload);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	enum mode mode = size ? (enum mode) (data[0] % MODE_MAX) : STRANGER;
	struct control *c = NULL,
		keyed = { .server = true, .keyed = true, .timeout_ns = NSEC_PER_SEC, .peer_name = "fuzz" };
	const struct token none = { .length = 0 };
	struct pair p = pair_without_ports();

	failure_reset();
	if (size > 0)
		data++, size--;
	if (mode == GREETED)
		greet(p.ours);
	if (mode == CLIENT || mode == GREETED)
		put_frames(p.ours, data, size, mode == CLIENT);
	else
		put(p.ours, data, size);
	(void) shutdown(p.ours, SHUT_WR);
	if (mode == BETWEEN || mode == CLIENT) {
		keyed.fd = p.theirs;
		memcpy(keyed.key, key, sizeof(key));
		receive_all(&keyed);
		(void) close(p.theirs);
	} else if (pair_greet_from(p.theirs, mode == STRANGER_TO_TOKEN ? &token : &none, true, &c) == 0) {
		/* Nobody guesses a proof. */
		if (mode == STRANGER_TO_TOKEN)
			abort();
		receive_all(c);
		c = control_close(c);
	}
	(void) close(p.ours);
	return 0;
}
