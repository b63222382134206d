/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check: what a command of lat, bw or transfer asks for, told without a host.
 * All keys are those of the records that the command will write, and what a key says here, every record says there.
 * What only a host, a device or a provider can tell has no key: an absent key is open, null is known to be null.
 */
#pragma once

#include <jansson.h>

#include "options.h"

json_t *check_json(const struct options *o);    /* of options that are valid (options_validate()); to be released */

int command_check(const struct options *o);     /* an exit code */
