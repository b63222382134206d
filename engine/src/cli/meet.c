/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet: waits at a server until all parties of a flow are there,
 * so that external programs start in order without sleeping.
 */
#include "meet.h"

#include "client.h"
#include "control/control.h"
#include "measure/exchange.h"

/* What the server may need beyond the parties' own deadline to say that it has passed. */
#define MARGIN_NS (2 * NSEC_PER_SEC)

int meet_at(struct control *c, const char *flow, uint32_t parties, uint64_t timeout_ns, bool *ret_same_machine) {
	uint64_t timeout_ms = MAX(timeout_ns / NSEC_PER_MSEC, UINT64_C(1));
	struct open_arguments who = { 0 };
	int e;

	e = exchange_hear_identity(c, timeout_ns, &who);
	*ret_same_machine = who.same_machine;
	if (e == 0)
		e = control_send(c, FRAME_MEET,
				 json_pack("{s:s, s:I, s:I}", "flow", flow, "parties", (json_int_t) parties,
					   "timeout_ms", (json_int_t) timeout_ms));
	return e < 0 ? e : control_expect(c, FRAME_MET, timeout_ns + MARGIN_NS, NULL);
}

int command_meet(const struct options *o) {
	_cleanup_(control_closep) struct control *c = NULL;
	struct token token;
	bool same_machine;
	int e;

	e = token_read(o->token_file, &token);
	if (e == 0 && o->lines)
		return meet_lines(o, &token, STDIN_FILENO, STDOUT_FILENO);
	if (e == 0)
		e = control_connect(o->host, o->port, o->bind, &token, o->timeout_ns, &c);
	if (e == 0)
		e = meet_at(c, o->flow, o->parties, o->timeout_ns, &same_machine);
	return e < 0 ? (int) failure_code() : EXIT_MEASURED;
}
