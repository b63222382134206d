/* SPDX-License-Identifier: Apache-2.0 */
/* A corrupted byte: told to the other end, and in a record. */
#pragma once

#include <jansson.h>

#include "measure/verify.h"

/* The two ends' clocks have different origins: what is said is how long ago it was. NULL: nothing is located. */
json_t *bad_byte_say(const struct integrity *i);
int bad_byte_hear(const json_t *json, struct bad_byte *ret); /* -EBADMSG */

/* As a record has it; NULL: nothing is located. */
json_t *bad_byte_json(const struct integrity *i);
