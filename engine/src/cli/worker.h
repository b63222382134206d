/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of one control connection, in a process of its own:
 * it sets the environment that providers read only once, its CPU time is the job's, and it may crash alone.
 */
#pragma once

#include "control/control.h"
#include "options.h"

/* How a worker and its listener speak, over a SOCK_SEQPACKET pair: one struct each way, and end of file for death. */
struct meeting_request {
	char flow[OPTIONS_FLOW_MAX];
	uint32_t parties;
	uint32_t timeout_ms;
};

struct meeting_answer {
	uint32_t arrived;
	uint32_t parties;       /* as the first party said; arrived == parties: met */
};

/*
 * The worker's exit code for a client that asked for nothing: serve --once then waits for another. Not an exit_code.
 */
enum { WORKER_STRANGER = 64 };

/*
 * Serves a client that has proved itself, and closes its connection; `listener_fd` is the way back to the listener.
 * Answers an exit code, which only the listener sees: --once ends with it.
 */
int worker_run(const struct options *options, struct control *control, int listener_fd);
