/* SPDX-License-Identifier: Apache-2.0 */
/* Huge pages: how many there are, and what to do when they are not enough. */
#pragma once

#include "base/util.h"

/*
 * Says why `length` bytes could not be had in pages of `huge` bytes: how many of them are free,
 * on the NUMA nodes that this process is bound to where it is bound, how many are needed, and how to reserve them.
 * `sys` is "/sys", or a copy of it for tests; `error` is mmap(2)'s errno. Answers -ENOMEM (said, EXIT_HOST).
 */
int huge_failure(const char *sys, uint64_t huge, uint64_t length, int error);
