/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/escape.h"

static const uint8_t magic[4] = { 'P', 'R', 'C', 'H' };

static void header_pack(enum frame_type type, size_t length, uint8_t *ret) {
	uint16_t version = htons(CONTROL_VERSION), t = htons((uint16_t) type);
	uint32_t n = htonl((uint32_t) length);

	memcpy(ret, magic, 4);
	memcpy(ret + 4, &version, 2);
	memcpy(ret + 6, &t, 2);
	memcpy(ret + 8, &n, 4);
}

/* Checks magic, version, type and size before a byte of payload is read. Silent: the caller knows whom to blame. */
static int header_unpack(const uint8_t *bytes, size_t limit, struct frame_header *ret) {
	struct frame_header h;

	if (memcmp(bytes, magic, 4) != 0)
		return -EPROTO;
	memcpy(&h.version, bytes + 4, 2);
	memcpy(&h.type, bytes + 6, 2);
	memcpy(&h.length, bytes + 8, 4);
	h = (struct frame_header) { ntohs(h.version), ntohs(h.type), ntohl(h.length) };
	*ret = h;
	if (h.version != CONTROL_VERSION)
		return -EPROTONOSUPPORT;
	if (h.type == 0 || h.type >= FRAME_MAX)
		return -EPROTO;
	if (h.length > limit)
		return -EMSGSIZE;
	return 0;
}

int control_say_lost(const struct control *c, int r, const char *what) {
	if (r == -ECONNRESET)
		return failure(r, EXIT_PEER,
			       "lost %s: the connection was closed while %s; look at its log for the cause",
			       c->peer_name, what);
	if (r == -ETIMEDOUT)
		return failure(r, EXIT_PEER, "%s did not answer in time while %s; "
			       "it hangs, or the network to it does (--timeout sets the limit)", c->peer_name, what);
	return failure(r, EXIT_PEER, "control connection to %s failed while %s: %s", c->peer_name, what, strerror(-r));
}

int control_read_header(const struct control *c, const uint8_t *bytes, size_t limit, struct frame_header *ret) {
	struct frame_header h;
	int r = header_unpack(bytes, limit, &h);

	*ret = h;
	switch (r) {
	case 0:
		return 0;
	case -EPROTONOSUPPORT:
		return failure(r, EXIT_PEER, "%s has control protocol version %u, this perch has %d; "
			       "install the same version on both hosts", c->peer_name, h.version, CONTROL_VERSION);
	case -EMSGSIZE:
		return failure(r, EXIT_PEER, "%s sent a frame of %u bytes, above the limit of %zu; refused",
			       c->peer_name, h.length, limit);
	default:
		return failure(r, EXIT_PEER,
			       "%s does not use perch's control protocol; is another program on that port?",
			       c->peer_name);
	}
}

int control_send_raw(struct control *c, enum frame_type type, const void *payload, size_t length) {
	_cleanup_free_ uint8_t *frame = NULL;
	size_t total = CONTROL_HEADER + length + (c->keyed ? CONTROL_MAC : 0);

	frame = malloc(total);
	if (!frame)
		return -ENOMEM;
	header_pack(type, length, frame);
	if (length > 0)
		memcpy(frame + CONTROL_HEADER, payload, length);
	if (c->keyed)
		auth_frame(c->key, c->server, c->sent, frame, frame + CONTROL_HEADER, length,
			   frame + CONTROL_HEADER + length);
	c->sent++;
	/* One write, so that a frame is one packet and never waits for Nagle. */
	return socket_write(c->fd, frame, total, monotonic_ns() + c->timeout_ns);
}

/* Receives header, payload and proof; *ret_payload is allocated, with a NUL behind it. Silent but for bad frames. */
static int receive_raw(struct control *c, size_t limit, uint64_t timeout_ns, struct frame_header *ret,
		       uint8_t **ret_payload) {
	_cleanup_free_ uint8_t *payload = NULL;
	uint8_t bytes[CONTROL_HEADER], mac[CONTROL_MAC], expected[CONTROL_MAC];
	uint64_t deadline = monotonic_ns() + timeout_ns;
	struct frame_header h;
	int r;

	r = socket_read(c->fd, bytes, sizeof(bytes), deadline);
	if (r < 0)
		return r;
	r = control_read_header(c, bytes, limit, &h);
	if (r < 0)
		return r;
	payload = malloc(h.length + 1);
	if (!payload)
		return -ENOMEM;
	r = socket_read(c->fd, payload, h.length, deadline);
	if (r < 0)
		return r;
	payload[h.length] = '\0';
	if (c->keyed) {
		r = socket_read(c->fd, mac, sizeof(mac), deadline);
		if (r < 0)
			return r;
		auth_frame(c->key, !c->server, c->received, bytes, payload, h.length, expected);
		if (!auth_equal(mac, expected))
			return failure(-EBADMSG, EXIT_PEER, "a frame from %s was altered on its way; refused",
				       c->peer_name);
	}
	c->received++;
	*ret = h;
	*ret_payload = payload;
	payload = NULL;
	return 0;
}

int control_send(struct control *c, enum frame_type type, json_t *payload) {
	_cleanup_free_ char *text = payload ? json_dumps(payload, JSON_COMPACT) : strdup("{}");
	int r;

	json_decref(payload);
	if (!text)
		return failure(-ENOMEM, EXIT_INTERNAL, "no memory for a control frame");
	r = control_send_raw(c, type, text, strlen(text));
	return r < 0 ? control_say_lost(c, r, "sending to it") : 0;
}

void control_send_error(struct control *c) {
	_cleanup_free_ char *text = NULL;
	json_t *o;

	if (!c)
		return;
	o = json_pack("{s:i, s:s}", "code", (int) failure_code(), "message", failure_text());
	text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	if (text)
		(void) control_send_raw(c, FRAME_ERROR, text, strlen(text));
}

/* Whatever is shown of a peer's words, in a message, a table or a record, is fit for a terminal. */
static void escape_strings(json_t *value) {
	_cleanup_free_ char *escaped = NULL;
	const char *key;
	json_t *member;
	size_t size, i;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		json_object_foreach(value, key, member)
			escape_strings(member);
		break;
	case JSON_ARRAY:
		json_array_foreach(value, i, member)
			escape_strings(member);
		break;
	case JSON_STRING:
		size = 6 * json_string_length(value) + 1; /* the longest escape of one byte has 4, of three bytes 6 */
		escaped = malloc(size);
		if (escaped)
			escape_text(json_string_value(value), escaped, size);
		(void) json_string_set(value, escaped ? escaped : "");
		break;
	default:
		break;
	}
}

static json_t *load_frame(const uint8_t *text, size_t length) {
	json_t *o = json_loadb((const char *) text, length, JSON_REJECT_DUPLICATES, NULL);

	if (o)
		escape_strings(o);
	return o;
}

/* The peer gave up and said why: its words become ours. */
static int peer_failed(const struct control *c, json_t *payload) {
	const char *message = "it gave no reason";
	int code = EXIT_INTERNAL;

	(void) json_unpack(payload, "{s?i, s?s}", "code", &code, "message", &message);
	return failure(-EREMOTEIO, EXIT_PEER, "%s says: %s", c->peer_name, message);
}

int control_receive(struct control *c, uint64_t timeout_ns, enum frame_type *ret_type, json_t **ret_payload) {
	_cleanup_free_ uint8_t *text = NULL;
	struct frame_header h = { 0 };
	json_t *payload;
	int r;

	r = receive_raw(c, CONTROL_FRAME_MAX, timeout_ns, &h, &text);
	if (r < 0)
		return failure_text()[0] ? r : control_say_lost(c, r, "waiting for it");
	payload = load_frame(text, h.length);
	if (!json_is_object(payload)) {
		json_decref(payload);
		return failure(-EPROTO, EXIT_PEER, "%s sent a frame that is not a JSON object; rejected", c->peer_name);
	}
	if (h.type == FRAME_ERROR) {
		r = peer_failed(c, payload);
		json_decref(payload);
		return r;
	}
	*ret_type = (enum frame_type) h.type;
	if (ret_payload)
		*ret_payload = payload;
	else
		json_decref(payload);
	return 0;
}

int control_expect(struct control *c, enum frame_type type, uint64_t timeout_ns, json_t **ret_payload) {
	json_t *payload = NULL;
	enum frame_type found;
	int r;

	r = control_receive(c, timeout_ns, &found, &payload);
	if (r < 0)
		return r;
	if (found != type) {
		json_decref(payload);
		return failure(-EPROTO, EXIT_PEER, "%s sent frame %d where %d belongs; refused", c->peer_name, found,
			       type);
	}
	if (ret_payload)
		*ret_payload = payload;
	else
		json_decref(payload);
	return 0;
}

int control_pending(const struct control *c) {
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

void control_wait(const struct control *c, uint64_t timeout_ns) {
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	(void) poll(&p, 1, (int) (timeout_ns / NSEC_PER_MSEC));
}

bool control_has_ended(const struct control *c, uint64_t timeout_ns) {
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	char byte;

	if (poll(&p, 1, (int) MIN(timeout_ns / NSEC_PER_MSEC, UINT64_C(2000000000))) <= 0)
		return false; /* the receive that follows says so */
	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool control_is_lost(const struct control *c, uint64_t timeout_ns) {
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };

	return poll(&p, 1, (int) (timeout_ns / NSEC_PER_MSEC)) > 0;
}

/* Receives a frame of the handshake, which has a fixed type and length. */
static int handshake_receive(struct control *c, enum frame_type type, void *ret, size_t length) {
	_cleanup_free_ uint8_t *payload = NULL;
	struct frame_header h = { 0 };
	int r;

	r = receive_raw(c, CONTROL_REFUSAL_MAX, c->timeout_ns, &h, &payload);
	if (r < 0)
		return failure_text()[0] ? r : control_say_lost(c, r, "greeting it");
	if (h.type == FRAME_ERROR) {
		json_t *o = load_frame(payload, h.length);

		r = peer_failed(c, o);
		json_decref(o);
		return r;
	}
	if (h.type != type || h.length != length)
		return failure(-EPROTO, EXIT_PEER, "%s did not greet as perch does; refused", c->peer_name);
	memcpy(ret, payload, length);
	return 0;
}

static int handshake_client(struct control *c, const struct token *token) {
	struct hello mine = { .has_token = token->length > 0 }, theirs;
	uint8_t proof[CONTROL_MAC], expected[CONTROL_MAC];
	size_t proof_length = token->length > 0 ? CONTROL_MAC : 0;
	int r;

	r = auth_nonce(mine.nonce);
	if (r < 0)
		return r;
	r = control_send_raw(c, FRAME_HELLO, &mine, sizeof(mine));
	if (r < 0)
		return control_say_lost(c, r, "greeting it");
	r = handshake_receive(c, FRAME_CHALLENGE, &theirs, sizeof(theirs));
	if (r < 0)
		return r;
	if (theirs.has_token && !mine.has_token)
		return failure(-EACCES, EXIT_PEER, "%s requires a token; give --token-file or PERCH_TOKEN_FILE",
			       c->peer_name);
	if (!theirs.has_token && mine.has_token)
		return failure(-EACCES, EXIT_PEER,
			       "%s has no token, so it cannot prove who it is; start it with --token-file too",
			       c->peer_name);
	auth_proof(token, false, mine.nonce, theirs.nonce, proof);
	r = control_send_raw(c, FRAME_PROOF, proof, proof_length);
	if (r < 0)
		return control_say_lost(c, r, "greeting it");
	r = handshake_receive(c, FRAME_WELCOME, proof, proof_length);
	if (r < 0)
		return r;
	auth_proof(token, true, mine.nonce, theirs.nonce, expected);
	if (proof_length > 0 && !auth_equal(proof, expected))
		return failure(-EACCES, EXIT_PEER, "%s has another token, so it is not the intended server; "
			       "check --token-file on both hosts", c->peer_name);
	auth_key(token, mine.nonce, theirs.nonce, c->key);
	c->keyed = proof_length > 0;
	return 0;
}

/* A host that dies without a word is noticed within the deadline, also where this end only waits (tcp(7)). */
static void watch_host(int fd, uint64_t timeout_ns) {
	unsigned user_ms = (unsigned) MIN(timeout_ns / NSEC_PER_MSEC, (uint64_t) INT_MAX);
	int on = 1, count = 3, idle_s = (int) MAX(user_ms / 2000, 1u), interval_s = (int) MAX(user_ms / 6000, 1u);

	(void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	(void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof(user_ms));
}

void control_set_timeout(struct control *c, uint64_t timeout_ns) {
	c->timeout_ns = timeout_ns;
	watch_host(c->fd, timeout_ns);
}

int control_new(int fd, bool server, uint64_t timeout_ns, struct control **ret) {
	struct control *c = calloc(1, sizeof(*c));
	socklen_t length = sizeof(c->peer);
	int on = 1;

	if (!c) {
		(void) close_fd(fd);
		return failure(-ENOMEM, EXIT_HOST, "no memory for a control connection");
	}
	*c = (struct control) { .fd = fd, .server = server, .timeout_ns = timeout_ns };
	(void) getpeername(fd, (struct sockaddr *) &c->peer, &length);
	length = sizeof(c->local);
	(void) getsockname(fd, (struct sockaddr *) &c->local, &length);
	(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	watch_host(fd, timeout_ns);
	address_format(&c->peer, true, c->peer_name, sizeof(c->peer_name));
	*ret = c;
	return 0;
}

int control_connect(const char *host, uint16_t port, const char *bind, const struct token *token, uint64_t timeout_ns,
		    struct control **ret) {
	_cleanup_(control_closep) struct control *c = NULL;
	char address[80];
	int r, fd;

	r = socket_connect(host, port, bind, timeout_ns, &fd);
	if (r < 0)
		return r;
	r = control_new(fd, false, timeout_ns, &c);
	if (r < 0)
		return r;
	address_format(&c->peer, true, address, sizeof(address));
	(void) snprintf(c->peer_name, sizeof(c->peer_name), "%s (%s)", host, address);
	r = handshake_client(c, token);
	if (r < 0)
		return r;
	*ret = c;
	c = NULL;
	return 0;
}

struct control *control_close(struct control *c) {
	if (!c)
		return NULL;
	c->fd = close_fd(c->fd);
	free(c);
	return NULL;
}

void control_closep(struct control **c) {
	*c = control_close(*c);
}
