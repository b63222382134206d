/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's half of the greeting, step by step and without ever sleeping: one process greets many connections.
 * A peer that has proved nothing costs a few hundred bytes here; its two frames have one length each.
 */
#pragma once

#include "control.h"

struct greeting {
	struct control *control;        /* NULL: none */
	bool heard;                     /* its HELLO has come */
	size_t have;                    /* bytes of the frame that is coming */
	uint8_t frame[CONTROL_HEADER + CONTROL_HELLO_MAX];
	uint8_t proof[CONTROL_MAC], answer[CONTROL_MAC], key[CONTROL_MAC];      /* of this token and both nonces */
};

/* Takes an accepted socket over, also when it fails. Negative: said, EXIT_PEER (or EXIT_HOST: no memory). */
int greeting_begin(int fd, bool has_token, struct greeting *ret);

/*
 * Takes what has come. 0: more must come; 1: the peer has proved that it knows the token, and `control` is ready for
 * frames. Negative: said. -ECONNRESET: it has gone.
 */
int greeting_hear(struct greeting *g, const struct token *token);

/* Tells a peer that has proved nothing why it is refused, where that is its own fault; closes the connection. */
void greeting_refuse(struct greeting *g);
