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
 * -ENOMEM (said, EXIT_HOST) where less than `length` bytes are available: on the host, on the NUMA nodes that this
 * thread is bound to, or in its control groups. The kernel would map them, and end some process when they are touched.
 * `root` has proc/ and sys/: "" is this host's, and tests have a copy.
 */
int room_check(const char *root, uint64_t length);
