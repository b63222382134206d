/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a job in its place: what its command line asks for, near the devices that it uses. */
#pragma once

#include "backends/backend.h"
#include "host/placement.h"

struct place {
	struct topology topology;
	struct placement placement;
	int nodes[JOB_THREADS_MAX];     /* of each lane's device; -1: none, or unknown */
};

/* Chooses; nobody has moved yet. Negative: said. */
int place_open(const struct open_arguments *arguments, struct place *ret);

/* serve's own wish, before there is a job. Negative: said. */
int place_check(const struct job *own);

/* The calling thread is, or acts for, `thread`, and goes to its place; its memory is that of `lane`. Negative: said. */
int place_sit(const struct place *p, unsigned thread, unsigned lane);

/* What became of a thread whose buffer is in `arena`. */
struct placed place_say(const struct place *p, unsigned thread, const struct arena *arena);
