/* SPDX-License-Identifier: Apache-2.0 */
/* What this process holds: where it grows over hours, something leaks. */
#pragma once

#include "base/util.h"

struct footprint {
	int64_t resident_bytes; /* negative: unknown */
	int64_t handles;        /* open files, sockets and the like */
};

struct footprint footprint_now(void);

/*
 * Makes resident what has been allocated and not been touched yet, so that from here on growth is growth:
 * a library's rings and pools would else come with the messages that reach them, for minutes,
 * or for hours of a slow pace. Kernels before 5.14 leave it as it is.
 */
void footprint_settle(void);
