/* SPDX-License-Identifier: Apache-2.0 */
/* The backends of this program. Only the Makefile knows which libraries were found. */
#pragma once

#include "backend.h"

extern const struct backend backend_tcp, backend_verbs, backend_ofi, backend_cxi, backend_null;

/* All that this program was built with, in the order of --help; ends with NULL. */
extern const struct backend *const backends[];

/* The backend of that name; NULL: unknown or not built in. */
const struct backend *backend_find(const char *name);

/* Of a valid job: whether this program was built with its backend. -EOPNOTSUPP (said, EXIT_HOST). */
int backend_require(const struct job *job);
