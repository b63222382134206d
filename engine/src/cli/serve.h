/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listener. It accepts, starts a worker process for each connection,
 * and introduces the parties of a meeting to each other.
 * It reads nothing from the network and never touches a fabric library, so nothing that a peer sends can end it.
 */
#pragma once

#include "options.h"

int command_serve(const struct options *options);       /* an exit code */
