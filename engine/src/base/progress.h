/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line on the terminal while perch measures: what runs, and what is left. Without a terminal on standard error
 * every function returns at once. A thread of its own draws, so a slow terminal never delays a message.
 */
#pragma once

#include "util.h"

/* `steps` sizes (transfer: sizes and batches) of `count` messages each, or of `duration_ns` each if that is not 0. */
void progress_start(size_t steps, uint64_t count, uint64_t duration_ns);

/* The next step warms up; `format`: what it measures, such as "64 bytes". */
void progress_step(const char *format, ...) _printf_(1, 2);

/* Its warm-up is over. */
void progress_begin(void);

/* So many messages are complete. */
void progress_done(uint64_t messages);

/* Around what others write to the terminal. */
void progress_hide(void);
void progress_show(void);

/* Removes the line. */
void progress_stop(void);

/* The rest is for the tests. */

enum { PROGRESS_WHAT_MAX = 48, PROGRESS_LINE_MAX = 128 };

struct progress {
	char what[PROGRESS_WHAT_MAX];
	size_t step, steps;             /* the first step is 1 */
	uint64_t count, duration_ns;    /* of each step; the duration outranks */
	uint64_t begin_ns;              /* 0: it warms up */
};

/* "perch: 64 bytes, 2 of 14: 37 %, 12 s left" */
void progress_text(const struct progress *p, uint64_t now_ns, uint64_t done, char ret[PROGRESS_LINE_MAX]);
