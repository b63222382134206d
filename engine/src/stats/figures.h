/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as a record has them. */
#pragma once

#include <jansson.h>

#include "histogram.h"

/* Latency of a histogram as the record has it; halved where the definition says so. NULL: empty. */
json_t *latency_json(const struct histogram *h, bool halve);

/* x, or null where it is negative or not finite: what was not measured is never 0. */
json_t *number_or_null(double x);
