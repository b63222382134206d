/* SPDX-License-Identifier: Apache-2.0 */
/* The exit codes of every subcommand: a public contract (README, perch(1)). */
#pragma once

enum exit_code {
	EXIT_MEASURED = 0,      /* measured, within every limit given */
	EXIT_LIMIT = 1,         /* measured, but outside a limit given on the command line */
	EXIT_USAGE = 2,         /* the command itself is wrong */
	EXIT_HOST = 3,          /* this host cannot run it: no device, provider, permission, memory, port in use */
	/* the peer: not resolved, lost, refused, timed out, cannot run it, wrong token or version */
	EXIT_PEER = 4,
	EXIT_CORRUPT = 5,       /* payload corrupted; outranks EXIT_LIMIT */
	EXIT_INTERNAL = 6,      /* internal, local input/output, or the own device lost in the middle */
};
