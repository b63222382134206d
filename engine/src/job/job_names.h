/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of words, for job_json.c; everybody else asks for one name at a time (job.h). */
#pragma once

#include "job.h"

extern const char *const op_names[OP_MAX], *const kind_names[KIND_MAX], *const definition_names[DEFINITION_MAX];
extern const char *const completion_mode_names[COMPLETION_MODE_MAX], *const clock_names[CLOCK_KIND_MAX];
extern const char *const rate_unit_names[RATE_UNIT_MAX], *const connection_names[CONNECTION_MAX];
extern const char *const key_mode_names[KEYS_MAX], *const fabric_class_names[FABRIC_CLASS_MAX];

/* The place of a name; -EINVAL: it is not there. */
int name_index(const char *const *names, int max, const char *name);
