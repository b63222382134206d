/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands that talk to a server: lat and bw (client.c), transfer (transfer.c), meet (meet.c). */
#pragma once

#include "options.h"

int command_measure(const struct options *options);     /* an exit code */
int command_transfer(const struct options *options);
int command_meet(const struct options *options);
int command_devices(const struct options *options);
