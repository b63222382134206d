/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a job in its place: what its command line asks for, near the devices that it uses. */
#pragma once

#include "backends/backend.h"
#include "host/placement.h"

struct place {
	struct topology topology;
	struct placement placement;
	int nodes[JOB_THREADS_MAX];     /* of each lane's device; -1: none, or unknown */
	/* Network devices of this host that work at the same time: of each lane, or of commands side by side. */
	char devices[JOB_THREADS_MAX][JOB_NAME_MAX];
	unsigned own, slots, slot;      /* of a command without lanes: as struct gpu_seat */
};

/* Chooses; nobody has moved yet. Negative: said. */
int place_open(const struct open_arguments *arguments, struct place *ret);

/* serve's own wish, before there is a job. Negative: said. */
int place_check(const struct job *own);

/* The calling thread is, or acts for, `thread`, and goes to its place; its memory is that of `lane`. Negative: said. */
int place_sit(const struct place *p, unsigned thread, unsigned lane);

/* Finds the GPUs that kinds of a lane's memory name. Negative: said. */
int place_memory(struct place *p, unsigned lane, struct memory_kind *kinds, size_t n);

/* What became of a thread whose buffer is in `arena`. */
struct placed place_say(const struct place *p, unsigned thread, const struct arena *arena);
