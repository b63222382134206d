/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perch under the name of MORI-IO's benchmark (ROCm/mori, tests/python/io/benchmark.py): its arguments, and its boxed
 * table of each initiator's rank. A front end of `perch transfer`, as personality.h is of lat and bw.
 *
 * One process stands for all ranks of a node: without --host it is the target.
 */
#pragma once

#include "options.h"

/* >0: the command line is the benchmark's, behind *ret_skip words; 0: it is not. */
int mori_asked(int argc, char **argv, int *ret_skip);

/* Parses it into perch's options. Like options_parse(). */
int mori_parse(int argc, char **argv, struct options *ret);
