/* SPDX-License-Identifier: Apache-2.0 */
/* What one size came to, both ends together, and how it is written: a table for people, JSON for programs. */
#pragma once

#include <time.h>

#include "host/footprint.h"
#include "measure/run.h"

/* Payload of one size on the wire, seen from the client: warm-up and measurement, both ways. */
struct path_claim {
	/* a backend without a network claims nothing, and a phase that broke off cannot */
	bool known;
	uint64_t sent_bytes, received_bytes;
	uint64_t lost_bytes;            /* of both; UC and UD. Meaningless where result.loss_unknown */
};

struct transfer_view; /* transfer_result.h */

struct result {
	const struct transfer_view *transfer;   /* NULL: lat or bw */
	const struct run *run;          /* client; its histogram and outcome are still there */
	uint64_t size;
	uint64_t messages;              /* both ways, measured */
	/* both ways, where messages can get lost: then messages are those that arrived */
	uint64_t sent, lost;
	bool loss_unknown;              /* nobody saw them arrive: messages are those that were sent */
	uint64_t bytes;                 /* payload, both ways */
	struct timespec started;
	struct cpu_time server_cpu;
	struct footprint server_footprint;
	struct integrity integrity;     /* both ends */
	struct path_claim path;
	json_t *server;                 /* {host, device, address}; not owned, but for transfers (view_close()) */
	const char *client_host;
	/* status error where code is not EXIT_MEASURED: */
	enum exit_code code;
	const char *message;
};

/* Bandwidth in Gb/s of payload; 0 where nothing was measured. */
double result_gbit_s(const struct result *r);

/* Messages that the record calls sent: in a second, both ways. */
double result_messages_s(const struct result *r);

/* Rate of the links in one direction, in Gb/s; 0: unknown. */
double result_link_gbit_s(const struct result *r);

/* The bandwidth in percent of the links' rate, of both directions where both were measured; negative: unknown. */
double result_link_percent(const struct result *r);

/* Adds what a phase that is over has moved; `theirs`: messages that the server sent, or started, itself. */
void result_claim(struct result *r, uint64_t theirs);

/* The p99 that --max-p99 bounds, in us; negative: not measured, or too few samples. */
double result_p99_us(const struct result *r);

/* write_json.c: one object a line. */
json_t *record_json(const struct result *r);            /* the whole record, without samples */
/* its params; without a session as they were asked for */
json_t *params_json(const struct result *r, const struct backend_facts *facts);
const char *definition_text(const struct job *job, bool half_round_trip);
json_t *time_json(const struct timespec *t);            /* UTC, to the millisecond */
char *record_text(const json_t *o);                     /* to be freed; NULL: no memory */
void write_line(json_t *o);                             /* to standard output; releases it */
void write_json_result(const struct result *r);
void write_json_interval(const struct run *r, const json_t *interval);

/* write_table.c: a header before the first size, a line each; intervals and samples as they come. */
/* `host`: as it was asked for */
void write_table_header(const char *host, const struct run *r, const json_t *server);
void write_table_result(const struct result *r);
void write_table_interval(const struct run *r, const json_t *interval);
