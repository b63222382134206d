/* SPDX-License-Identifier: Apache-2.0 */
#include "finish.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include "base/message.h"

/* Of a pipe or a socket; a file or a terminal has no reader to lose. */
static bool reader_is_gone(void) {
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) == 1 && p.revents & (POLLERR | POLLHUP);
}

int finish(int code) {
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (reader_is_gone()) {
		/* as of "perch lat HOST | head -1": the shell expects the signal, and no words */
		(void) signal(SIGPIPE, SIG_DFL);
		(void) raise(SIGPIPE);
	}
	(void) failure(-EIO, EXIT_INTERNAL, "cannot write the results to standard output: %s", strerror(errno));
	return EXIT_INTERNAL;
}
