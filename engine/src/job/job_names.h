/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of words, each with NULL at its end, for members.c; all others ask for one name at a time (job.h). */
#pragma once

#include "job.h"

extern const char *const op_names[OP_MAX + 1], *const kind_names[KIND_MAX + 1];
extern const char *const definition_names[DEFINITION_MAX + 1];
extern const char *const completion_mode_names[COMPLETION_MODE_MAX + 1], *const clock_names[CLOCK_KIND_MAX + 1];
extern const char *const rate_unit_names[RATE_UNIT_MAX + 1], *const connection_names[CONNECTION_MAX + 1];
extern const char *const key_mode_names[KEYS_MAX + 1], *const fabric_class_names[FABRIC_CLASS_MAX + 1];
extern const char *const relaxed_ordering_names[RELAXED_ORDERING_MAX + 1];

/* The place of a name; -EINVAL: it is not there. */
int name_index(const char *const *names, int max, const char *name);
