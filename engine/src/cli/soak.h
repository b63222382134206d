/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A soak: lat or bw for hours, whatever happens to the connection. Two processes share it (docs/soak.md): a keeper,
 * which never touches a fabric library, keeps FILE and the time; the other measures, over one connection,
 * says a line of JSON for each interval into a pipe, and is made anew when it is lost.
 */
#pragma once

#include "options.h"
#include "output/write_soak.h"

/*
 * A server that is away answers no sooner than its network does;
 * TCP repeats its first packets after 1 s and 3 s (RFC 6298).
 */
#define SOAK_CONNECT_NS (4 * NSEC_PER_SEC)

int command_soak(const struct options *o);                              /* soak.c; an exit code */
/* client.c; in the process that measures */
int command_soak_measure(const struct options *o, const struct soak *soak);
