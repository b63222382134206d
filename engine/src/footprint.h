/* SPDX-License-Identifier: Apache-2.0 */
/* What this process holds: where it grows over hours, something leaks. */
#pragma once

#include "util.h"

struct footprint {
	int64_t resident_bytes; /* negative: unknown */
	int64_t handles;        /* open files, sockets and the like */
};

struct footprint footprint_now(void);
