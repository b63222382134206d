/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processors and memory of this host, as sysfs shows them, and what of both this process may use.
 * Sets of NUMA nodes are kept as sets of processors are: both have at most 1024 members, by the kernel's own limits.
 */
#pragma once

#include "base/cpu_list.h"

struct topology {
	cpu_set_t cpus;                 /* of this host */
	cpu_set_t allowed;              /* of these, to this process */
	cpu_set_t isolated;             /* kept free of what the scheduler spreads (isolcpus) */
	cpu_set_t nodes;                /* empty: the kernel knows of none */
	cpu_set_t memory;               /* nodes that have memory */
	cpu_set_t allowed_memory;       /* of these, to this process */
	int core[CPU_SETSIZE];          /* the first processor of its core, which stands for the core */
	int node[CPU_SETSIZE];          /* -1: unknown */
};

/* `sysfs` is "/sys". What it does not show stays unknown: each processor is then a core of its own. */
void topology_read(const char *sysfs, const cpu_set_t *cpus, const cpu_set_t *nodes, struct topology *ret);

/* What this process may use: its affinity, and its nodes (cpuset.mems). */
void topology_allowed(cpu_set_t *ret_cpus, cpu_set_t *ret_nodes);

/*
 * The NUMA node of a device (verbs, CXI, an interface), or of the interface below a software device;
 * -1: none, or unknown.
 */
int device_node(const char *sysfs, const char *device);
