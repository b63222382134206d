/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of a soak, from its lines: from those that are said now, and from those of a file that is continued. */
#pragma once

#include <jansson.h>

#include "histogram.h"
#include "job/job.h"

struct soak_total {
	json_t *connection;             /* the last one's line: what the intervals have in common */
	json_t *began;                  /* when the first connection stood, by the wall */
	struct histogram *histogram;
	bool half_round_trip;
	uint64_t intervals, connections, gaps, stalls, messages, bytes;
	double elapsed_s, gap_s, stall_s;
	double end_s;                   /* until when the lines account for the time */
	json_t *ended;                  /* the same by the wall; NULL: no line does yet */
	double peak_gbit, least_gbit;   /* of windows; negative: none yet */
	/* Sums; not a number as soon as one interval lacks it. */
	double client_s, server_s, client_system_s, server_system_s;
	double claimed, sent, received, lost;
	double skipped;
	double behind_s;                /* of elapsed_s: intervals that did not keep their pace */
	double sent_messages, lost_messages;    /* of connections that may lose them */
	bool lossy;
	uint64_t checked_bytes, bad_bytes;
	bool verified;
	json_t *first_bad;              /* as its interval has it; NULL: none, or unknown */
	double retransmissions, before;         /* of this connection, and of those before it */
	bool tcp;
	double longest_s, longest_start_s;      /* stall */
	json_t *longest_began;
	bool over;                      /* the record of the whole is there already, and its time was over */
};

int soak_total_new(struct soak_total *ret);     /* -ENOMEM (said) */
void soak_total_done(struct soak_total *t);

/* Adds what a line says; lines of other kinds are none of its business. -EBADMSG: it is damaged (said). */
int soak_total_add(struct soak_total *t, const json_t *line);

/*
 * The record of all of it: the keys of any other, and `soak` for what only a soak has.
 * `error`: null where the soak was measured. Both belong to the record from here on.
 */
json_t *soak_total_record(const struct soak_total *t, const struct job *job, json_t *soak, json_t *error);
