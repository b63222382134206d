/* SPDX-License-Identifier: Apache-2.0 */
/* What leading a job takes, whatever it measures: connecting, opening, judging limits, failing. */
#pragma once

#include "measure/exchange.h"
#include "options.h"
#include "output/result.h"

struct lead {
	const struct options *options;
	struct control *control;        /* NULL: not connected */
	char host[256];                 /* of this end, for records */
	enum exit_code worst;           /* of the sizes done */
};

/* Validates the options, and connects to the server within connect_ns. 0, or negative (said). */
int lead_connect(struct lead *l, uint64_t connect_ns);

/* Hears who the server is, chooses the job's provider, and says the job. In *ret what opens the data path. Said. */
int lead_open(const struct lead *l, struct job *job, struct open_arguments *ret);

/* Says what a reader of the figures must know of an open data path. */
void lead_remark(const struct session *s);

/* Whether a result is intact, and within the command line's limits; says what is not, and counts it. */
enum exit_code lead_judge(const struct lead *l, const struct result *r);

/* Corruption is worse than anything, and else the first is the worst. */
void lead_count(struct lead *l, enum exit_code code);

/* A phase of messages of `size` bytes has failed by e: says so unless that was said, and whose fault it is. */
void lead_failed(const struct lead *l, const struct job *job, uint64_t size, int e);

/* Where e is negative: tells the server, and counts it. The caller closes the control connection. */
void lead_end(struct lead *l, int e);
