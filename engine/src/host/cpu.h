/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time: this process's own, and the whole host's,
 * since soft interrupts and kernel workers escape a process's account.
 */
#pragma once

#include "base/util.h"

struct cpu_time {
	double process_s;       /* user and system, all threads; negative: unknown */
	double host_s;          /* busy seconds summed over all CPUs; negative: unknown */
};

void cpu_now(struct cpu_time *ret);

/* later - earlier; unknown stays unknown. */
struct cpu_time cpu_since(const struct cpu_time *earlier);
