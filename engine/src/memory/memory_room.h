/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory the buffers of this process may take: asked before they are mapped, which touches every page. */
#pragma once

#include "base/util.h"

/* `bytes`: of all buffers of this process together, in host memory and in GPUs; 0: no limit of ours. */
void room_limit(uint64_t bytes);

/*
 * Counts `length` bytes more. -ENOMEM (said, EXIT_HOST): they would be above the limit. room_give() returns them.
 * Threads may call both.
 */
int room_take(uint64_t length);
void room_give(uint64_t length);

/*
 * -ENOMEM (said, EXIT_HOST) where the host has less than `length` bytes for a program that starts now: the kernel would
 * map them, and end some process when they are touched. `meminfo`: "/proc/meminfo" (MemAvailable, proc_meminfo(5)).
 */
int room_check(const char *meminfo, uint64_t length);
