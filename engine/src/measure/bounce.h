/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --bounce: a GPU's memory through host memory, for backends that cannot reach it. It stands between the tests
 * and a backend: each message is copied out of the GPU when it is posted, and into the GPU before its arrival is told.
 * So the copies are a part of what is timed, at both ends, and a backend knows nothing of them.
 */
#pragma once

#include "backends/backend.h"

/*
 * Opens *backend over host memory, and itself over it: *backend becomes the one to be used.
 * Negative: said, and nothing has changed.
 */
int bounce_open(const struct open_arguments *arguments, const struct backend **backend, struct session **ret);
