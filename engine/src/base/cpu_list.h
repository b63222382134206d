/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of processors, or of NUMA nodes, in words; and where threads go that are no part of the measurement. */
#pragma once

#include <sched.h>

#include "util.h"

/* "0-3,8": numbers and ranges. -EINVAL: not of this form; -ERANGE: above 1023. */
int cpu_list_parse(const char *text, cpu_set_t *ret);

/* The same the other way round, as much as there is room for. */
enum { CPU_LIST_MAX = 512 };
const char *cpu_list_format(const cpu_set_t *set, char ret[CPU_LIST_MAX]);

/* Threads that wait or watch go here: set before there are any. NULL: wherever the scheduler likes. */
void aside_set(const cpu_set_t *cpus);

/* The calling thread waits, or watches: away from the cores that are taken, with memory from anywhere. */
void stand_aside(void);
