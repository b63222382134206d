/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tcp backend's files share: the session, and what transfers and message rates send over its connection.
 *
 * Initiator to target: requests of 16 bytes: the operation (1: write, 2: read, 3: send), flags (1: acknowledge), two
 * bytes of 0, the size (4 bytes), and the offset in the target's memory (8; of a send 0: it lands in the target's next
 * place). Behind the request of a write or send lies its payload.
 * Target to initiator: of writes and sends, words of 8 bytes: so many of them lie in memory by now.
 * Of reads, the payloads alone, in the order of their requests: who asked knows what comes. All numbers are big endian.
 */
#pragma once

#include <sys/uio.h>

#include "backends/backend.h"

enum {
	/* 128 random bits: a stranger cannot take the place of the peer on the data port */
	TCP_COOKIE = 16,
	TCP_REQUEST = 16,
	TCP_ACKNOWLEDGEMENT = 8,
};

/*
 * As much as one system call is given to move: its own cost (about 0.3 us)
 * is lost in what copying so much takes (100 us).
 */
#define TCP_GATHER_BYTES (UINT64_C(1) << 20)

struct tcp_session {
	struct session session;
	struct arena arena;
	int fd, listener;
	int wake_fd;
	enum role role;
	bool blocking_receive;          /* sleeping means a blocking recv(): one system call a message, as qperf's */
	int send_flags;                 /* 0: blocking sends; MSG_DONTWAIT */
	uint64_t timeout_ns;
	/* the server's address for data: where control reached it, and a port of its own */
	struct sockaddr_storage peer;
	uint8_t cookie[TCP_COOKIE];
	int64_t retransmissions_before; /* of handshake and earlier phases */
	int64_t initial_rtt_us;         /* -1: unknown */

	uint64_t size;                  /* of the messages of this phase */
	uint32_t tx_slot;               /* the message that the kernel has not taken whole yet: */
	uint64_t tx_left;
	bool tx_full;                   /* the socket's buffer was full when last tried */
	uint32_t *lent;                 /* ring of lent receive slots, in order of use */
	uint32_t lent_head, lent_tail, lent_size;
	uint64_t rx_done;               /* bytes of the message that is arriving */

	/* Transfers only: */
	struct backend vtable;          /* the backend's own, with the hooks of one of these in front */
	struct tcp_initiator *initiator;
	struct tcp_target *target;
};

static inline struct tcp_session *tcp(struct session *s) {
	return (struct tcp_session *) s;
}

/* Says that the connection is lost while `what`; `error` 0: the peer has closed it. Negative. */
int tcp_lost(int error, const char *what);

/* tcp_transfer.c: the initiator, and what it shares with the target */

struct tcp_request {
	enum op op;
	bool acknowledge;               /* all but a read: say when this and all before it lie in memory */
	uint64_t offset, size;
};

void tcp_request_write(const struct tcp_request *request, uint8_t ret[TCP_REQUEST]);

/* Of a peer that may be hostile: only `op` is allowed, within `length` bytes. -EPROTO (said). */
int tcp_request_read(const uint8_t bytes[TCP_REQUEST], enum op op, uint64_t length, struct tcp_request *ret);

/* Gives the kernel what it takes of `total` bytes. How many; 0: none now; negative: said. */
int64_t tcp_send_some(struct tcp_session *s, struct iovec *iov, size_t n, uint64_t total);

/*
 * Takes what is there. How many bytes; 0: none now; -ENODATA: the peer has closed the connection (not said); else said.
 */
int64_t tcp_receive_some(struct tcp_session *s, struct iovec *iov, size_t n, const char *what);

/* Each end's part of arm(). */
int tcp_initiator_arm(struct tcp_session *s, struct completion *ret, unsigned max, struct pollfd *alarm);
int tcp_target_arm(struct tcp_session *s, struct pollfd *alarm);
int tcp_arm(struct session *s, struct completion *ret, unsigned max, struct pollfd alarms[BACKEND_ALARMS]);

/* What is to come, or to leave, of the connection; nothing: else a hang-up would wake it, again and again. */
static inline struct pollfd tcp_alarm(const struct tcp_session *s, bool comes, bool leaves) {
	return (struct pollfd) { .fd = comes || leaves ? s->fd : -1,
				 .events = (short) ((comes ? POLLIN : 0) | (leaves ? POLLOUT : 0)) };
}

void tcp_place(struct session *session, uint32_t slot, uint32_t channel, uint64_t offset, uint64_t size);

/* Both set hooks in s->vtable; what they have made before they failed is tcp_close()'s. -ENOMEM (said). */
int tcp_initiator_open(struct tcp_session *s, const struct job *job);
int tcp_target_open(struct tcp_session *s, const struct job *job, uint32_t channel);
struct tcp_initiator *tcp_initiator_close(struct tcp_initiator *i);
struct tcp_target *tcp_target_close(struct tcp_target *t);
