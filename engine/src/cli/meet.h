/* SPDX-License-Identifier: Apache-2.0 */
/* Meetings at a server: one by command line (meet.c), or many by lines (meet_lines.c). */
#pragma once

#include "control/control.h"
#include "options.h"

/*
 * On a connection that stands: waits until all parties are there. Negative: said.
 * In *ret_same_machine whether the server's kernel is this one.
 */
int meet_at(struct control *c, const char *flow, uint32_t parties, uint64_t timeout_ns, bool *ret_same_machine);

/*
 * Many meetings side by side, until the end of `in`. A request is a JSON object on a line:
 *     {"id": 7, "host": "192.0.2.1", "port": 18600, "flow": "a", "parties": 2, "timeout_ms": 5000}
 *     {"cancel": 7}
 * Each request gets one answer, in the order in which the meetings end:
 *     {"id": 7, "exit": 0, "same_machine": false}
 *     {"id": 7, "exit": 4, "message": "why"}
 * Answers an exit code.
 */
int meet_lines(const struct options *o, const struct token *token, int in, int out);
