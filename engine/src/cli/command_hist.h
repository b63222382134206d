/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "options.h"

/*
 * Merges the encoded histograms of the files (none, or "-": standard input),
 * prints one JSON object; answers the exit code.
 */
int command_hist(const struct options *o);
