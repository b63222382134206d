/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an end works: each of its threads on a core of its own, near its device, with its memory there.
 *
 * What a thread allocates while it sits (placement_sit()) lies on its node, memory of queues and doorbells included.
 * A core that is taken stays so for other processes of perch until this one ends.
 */
#pragma once

#include <jansson.h>

#include "job/job.h"
#include "topology.h"

/* Why an end's threads go wherever the scheduler likes. */
enum unplaced {
	PLACED,
	UNPLACED_OFF,           /* as asked */
	UNPLACED_SHARED,        /* both ends are on one machine, and would be in each other's way */
	UNPLACED_FEW,           /* fewer free cores than threads, the first processor's not counted: the kernel's own */
	UNPLACED_FORBIDDEN,     /* no core of the device's node that this process may use */
	UNPLACED_MAX,
};

/* What is wanted of an end. */
struct placement_wish {
	const char *cpu, *numa; /* --cpu, --numa; empty: auto */
	bool server;            /* --server-cpu, --server-numa: for messages */
	bool shared;            /* both ends are on one machine */
	const char *peer_cpu;   /* the other end's --cpu, as far as it is known; empty: auto */
	unsigned threads;       /* 1 to JOB_THREADS_MAX */
	int nodes[JOB_THREADS_MAX];     /* of each one's device; -1: none, or unknown */
	/*
	 * Ends of this host with one thread each that work at the same time: nodes of their devices, and which is this
	 * one's; 0: alone. Each device has so many ends, 1 to 1024; this one is number `slot` of its own, from 0.
	 */
	unsigned n_rails, rail;
	unsigned n_slots, slot;
	int rails[JOB_DEVICES_MAX];
};

struct placement {
	enum unplaced why;
	unsigned threads;
	int cpus[JOB_THREADS_MAX];      /* of each thread */
	int memory;             /* as asked; or MEMORY_NEAR, MEMORY_ANYWHERE */
	cpu_set_t before;       /* what this process might use */
	cpu_set_t aside;        /* the same without the cores that are taken */
};

enum { MEMORY_NEAR = -1, MEMORY_ANYWHERE = -2 };

/* Where one end, or one thread of it, has come to be: as records have it. */
struct placed {
	enum unplaced why;
	cpu_set_t cpus;         /* empty where it is not placed */
	int node;               /* of these; -1: unknown, or several */
	int memory_node;        /* where its buffer lies; -1: unknown, several, or a GPU */
	char gpus[JOB_MEMORY_TEXT];     /* PCI addresses of these GPUs, "0000:3b:00.0,0000:86:00.0"; empty: none */
};

/* Whether this host has what the wish names, and enough of it. -ENODEV (said). */
int placement_check(const struct topology *t, const struct placement_wish *w);

/*
 * Chooses: of a wish that placement_check() took. `sysfs` is "/sys": the cores' directories are what is locked.
 * Other threads of this process shall stand aside from now on.
 */
void placement_choose(const char *sysfs, const struct topology *t, const struct placement_wish *w,
		      struct placement *ret);

/*
 * The calling thread is, or acts for, thread number `thread`, whose device is on `node`:
 * it goes to its core, and what it allocates to its node. -EPERM etc. (said).
 */
int placement_sit(const struct placement *p, unsigned thread, int node);

/* What became of it, for thread `thread` with its buffer at `memory` (NULL: none in host memory). */
struct placed placement_say(const struct placement *p, const struct topology *t, unsigned thread, void *memory);

/* Adds another thread of the same end. */
void placed_add(struct placed *to, const struct placed *p);

/* The buffer of a thread lies in the GPU at this PCI address, too. */
void placed_add_gpu(struct placed *to, const char *address);

/* {cpu, node, memory_node, unplaced}, and gpu where there is one, as it goes to the peer and into records. */
json_t *placed_to_json(const struct placed *p);
int placed_from_json(const json_t *json, struct placed *ret);   /* -EBADMSG */

/* Says why an end is not placed, where that was not asked for. */
void placed_remark(const struct placed *own, const struct placed *server);
