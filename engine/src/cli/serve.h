/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listener. It greets clients, forks a worker process for each that has proved itself,
 * and introduces the parties of a meeting to each other.
 * From the network it reads the two short frames of a greeting, and it never touches a fabric library.
 */
#pragma once

#include "options.h"

int command_serve(const struct options *options);       /* an exit code */
