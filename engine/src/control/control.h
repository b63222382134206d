/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control connection: what two ends say to each other beside the traffic that is measured.
 *
 * Frames over TCP: a 12-byte header (magic, protocol version, type, payload length, all big-endian),
 * a JSON payload, and, once both sides have proved that they know the token, an HMAC-SHA256 over direction,
 * frame number, header and payload.
 *
 *     client                               server
 *       HELLO      nonce, has token   -->
 *                                     <--   CHALLENGE  nonce, has token
 *       PROOF      HMAC(token, "client", both nonces)  -->
 *                                     <--   WELCOME    HMAC(token, "server", both nonces)
 *                                     <--   IDENTITY   who and where I am
 *       JOB or MEET ...
 *
 * Without a token the proofs are empty; only loopback is served then.
 * Every step has a deadline, every frame a size limit.
 */
#pragma once

#include <jansson.h>
#include <sys/socket.h>

#include "base/message.h"
#include "base/util.h"

enum {
	CONTROL_VERSION = 2,
	CONTROL_PORT = 18600,           /* not assigned by IANA, below Linux's ephemeral ports (32768) */
	CONTROL_FRAME_MAX = 64 * 1024,  /* the largest real frame, an address, has 5 KiB */
	CONTROL_HELLO_MAX = 64,         /* before the peer has proved anything */
	CONTROL_REFUSAL_MAX = 8 * FAILURE_TEXT_MAX,     /* a failure's words in JSON, each byte escaped at worst */
	CONTROL_TOKEN_MIN = 16,         /* bytes: 128 bits, if they are random */
	CONTROL_TOKEN_MAX = 4096,
	CONTROL_NONCE = 32,
	CONTROL_MAC = 32,               /* SHA-256 */
	CONTROL_HEADER = 12,
};

enum frame_type {
	FRAME_HELLO = 1,
	FRAME_CHALLENGE,
	FRAME_PROOF,
	FRAME_WELCOME,
	FRAME_IDENTITY,         /* {host, kernel}: server to client */
	FRAME_ERROR,            /* {code, message}: the sender gives up */
	FRAME_JOB,              /* client: the job */
	FRAME_ADDRESS,          /* both: {address, facts of the session} */
	FRAME_CONNECTED,        /* both: the data path stands */
	FRAME_START,            /* client: a phase begins */
	FRAME_STARTED,          /* server: receives are posted */
	FRAME_FINISH,           /* both: {count}: so many messages are all I send in this phase */
	FRAME_RECEIVED,         /* both: {count}: I have them all */
	FRAME_CHECK,            /* client: {first, count}: verify these writes now */
	FRAME_CHECKED,          /* server: {} */
	FRAME_DONE,             /* client: {elapsed_ns}: the phase is over; the server makes progress until then */
	FRAME_RESULT,           /* server: its side of the phase */
	FRAME_MEET,             /* client: {flow, parties, timeout_ms} */
	FRAME_MET,              /* server: {parties} */
	FRAME_BARRIER,          /* client: about to send a message; server: go on */
	FRAME_MAX,
};

struct token {
	size_t length;          /* 0: none */
	uint8_t bytes[CONTROL_TOKEN_MAX];
};

struct control {
	int fd;
	bool server;
	bool keyed;             /* frames carry an HMAC */
	uint8_t key[CONTROL_MAC];
	uint64_t sent, received;        /* frame numbers */
	uint64_t timeout_ns;            /* of each step */
	struct sockaddr_storage local, peer;
	char peer_name[256];            /* for messages: "beta (127.0.0.2)" */
};

/*
 * Reads a token; path NULL or empty: none. Refuses what others may read or own. Negative: said.
 * Until token_forget() this process has no core file, and no debugger of its own user.
 */
int token_read(const char *path, struct token *ret);
void token_forget(struct token *t);

/*
 * Connects to host:port (every address of the name in turn), proves the token, checks the server's.
 * Negative: said, EXIT_PEER.
 */
int control_connect(const char *host, uint16_t port, const char *bind, const struct token *token, uint64_t timeout_ns,
		    struct control **ret);

/* From here on another limit than that of the greeting: of each step, and of how long the network may be gone. */
void control_set_timeout(struct control *c, uint64_t timeout_ns);

/* Sends one frame; payload may be NULL (an empty object) and is released. -ECONNRESET, -ETIMEDOUT: said. */
int control_send(struct control *c, enum frame_type type, json_t *payload);

/* Sends a FRAME_ERROR with the first failure's words; silent, since the connection may be what failed. */
void control_send_error(struct control *c);

/*
 * Receives one frame within `timeout_ns`. *ret_type is any type but FRAME_ERROR, which is turned into the failure
 * that it reports (-EREMOTEIO, EXIT_PEER). ret_payload may be NULL. -ETIMEDOUT, -ECONNRESET, -EPROTO: said.
 */
int control_receive(struct control *c, uint64_t timeout_ns, enum frame_type *ret_type, json_t **ret_payload);

/* The same, for a frame that must be of one type. */
int control_expect(struct control *c, enum frame_type type, uint64_t timeout_ns, json_t **ret_payload);

/* 1: something is there to be received (or the peer has gone); 0: nothing. Never sleeps. */
int control_pending(const struct control *c);

/* Sleeps until something is there to be received (or the peer has gone), at most for timeout_ns. */
void control_wait(const struct control *c, uint64_t timeout_ns);

/*
 * Waits until the peer says something, or ends. True: it has closed the connection with nothing left to hear.
 * A client does so when it has all it wants; between phases that is no failure.
 */
bool control_has_ended(const struct control *c, uint64_t timeout_ns);

/* True where the peer has closed its end, or does so within timeout_ns. */
bool control_is_lost(const struct control *c, uint64_t timeout_ns);

struct control *control_close(struct control *c);
void control_closep(struct control **c);

/* "127.0.0.1:18600", "[::1]:18600"; without port where port is false. */
void address_format(const struct sockaddr_storage *a, bool port, char *ret, size_t size);

/* The rest is for control*.c and their tests. */

struct frame_header {
	uint16_t version;
	uint16_t type;
	uint32_t length;
};

/* What HELLO and CHALLENGE carry. */
struct hello {
	uint8_t nonce[CONTROL_NONCE];
	uint8_t has_token;
};

/* Takes the descriptor over, also when it fails. */
int control_new(int fd, bool server, uint64_t timeout_ns, struct control **ret);
int control_send_raw(struct control *c, enum frame_type type, const void *payload, size_t length);

/* Checks magic, version, type and size before a byte of payload is read. Negative: said. */
int control_read_header(const struct control *c, const uint8_t *bytes, size_t limit, struct frame_header *ret);

/* Says why nothing more comes; answers r. */
int control_say_lost(const struct control *c, int r, const char *what);

/* control_auth.c: both proofs and the key of the session, from the token and the two nonces. */
void auth_proof(const struct token *token, bool server, const uint8_t *client_nonce, const uint8_t *server_nonce,
		uint8_t *ret_mac);
void auth_key(const struct token *token, const uint8_t *client_nonce, const uint8_t *server_nonce, uint8_t *ret_key);
void auth_frame(const uint8_t *key, bool from_server, uint64_t number, const uint8_t *header, const uint8_t *payload,
		size_t length, uint8_t *ret_mac);
bool auth_equal(const uint8_t *a, const uint8_t *b);
int auth_nonce(uint8_t *ret);

/* control_socket.c: whole transfers with a deadline. -ECONNRESET: the peer has gone; -ETIMEDOUT. Silent. */
int socket_write(int fd, const void *data, size_t length, uint64_t deadline_ns);
int socket_read(int fd, void *ret, size_t length, uint64_t deadline_ns);
int socket_connect(const char *host, uint16_t port, const char *bind, uint64_t timeout_ns, int *ret);

/*
 * Listens on a numeric address or name (NULL or empty: the default for a server with or without a token).
 * Negative: said.
 */
int socket_listen(const char *bind, uint16_t port, bool token, int *ret_fds, size_t max);
