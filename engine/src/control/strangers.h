/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to a listener that have proved nothing yet. They have few places, a short time and no process.
 * When all places are taken, the address with most of them loses the one that waits longest, silent ones first: so a
 * flood from one address takes no place from another, and silence none from who speaks.
 */
#pragma once

#include <poll.h>

#include "control_greet.h"

enum {
	STRANGERS_MAX = 256,    /* file descriptors: a quarter of the usual soft limit, 1024 */
	STRANGERS_LINES = 10,   /* a minute, about those that are refused; the rest are counted */
};

/* For a stranger to prove itself: two round trips, and one segment lost on the way (RFC 6298: 1 s at first). */
#define STRANGER_NS (3 * NSEC_PER_SEC)

struct stranger {
	struct greeting greeting;       /* without a control: this place is free */
	uint64_t origin;                /* of its address: all ports, and an IPv6 network of 64 bits, are one */
	unsigned share;                 /* places of its origin, this one included */
	uint64_t since_ns;
};

struct strangers {
	struct stranger places[STRANGERS_MAX];
	unsigned n;
	struct token token;             /* while one is heard */
	uint64_t minute_ns;             /* since when `refused` counts */
	unsigned refused;
};

/* Takes an accepted socket over. */
void strangers_admit(struct strangers *s, int fd, bool has_token);

/* One entry for each that is here, and which place that is; answers how many. */
size_t strangers_poll(const struct strangers *s, struct pollfd *ret, unsigned *ret_places);

/*
 * Takes what came from one; NULL: it has not proved itself. The token is read each time, so that another one needs no
 * restart.
 */
struct control *strangers_hear(struct strangers *s, unsigned place, const char *token_file);

/* Ends those whose time is over. */
void strangers_expire(struct strangers *s);

/* When the next one's time is over; UINT64_MAX: there is none. */
uint64_t strangers_deadline(const struct strangers *s);

/* Closes this process's ends and forgets the token; says nothing to anyone. */
void strangers_close(struct strangers *s);
