/* SPDX-License-Identifier: Apache-2.0 */
/* perch: measures a fabric between two hosts. */
#include <signal.h>
#include <stdio.h>

#include "backend.h"
#include "client.h"
#include "command_hist.h"
#include "message.h"
#include "serve.h"

static int run(const struct options *o) {
	switch (o->command) {
	case COMMAND_SERVE:
		return command_serve(o);
	case COMMAND_LAT:
	case COMMAND_BW:
		return command_measure(o);
	case COMMAND_HIST:
		return command_hist(o);
	case COMMAND_MEET:
		return command_meet(o);
	case COMMAND_DEVICES:
		return command_devices(o);
	default:
		return EXIT_INTERNAL;
	}
}

/*
 * libfabric loads libraries that catch signals before main() and then exit(1), which here says that a limit was missed
 * (libpsm_infinipath does). Who is stopped or crashes must be seen to: the shell's 128 + n, and the listener's notice.
 */
static void restore_signals(void) {
	static const int stops[] = { SIGTERM, SIGINT };
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGABRT };

	for (size_t i = 0; i < ELEMENTSOF(stops); i++)
		(void) signal(stops[i], SIG_DFL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* theirs report the crash */
	for (size_t i = 0; i < ELEMENTSOF(crashes); i++)
		(void) signal(crashes[i], SIG_DFL);
#else
	(void) crashes;
#endif
}

int main(int argc, char **argv) {
	struct options options;
	int e;

	restore_signals();
	/* A reader that has gone is an error of a write, not a reason to die with workers running. */
	(void) signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; backends[i]; i++)
		if (backend_check(backends[i]) < 0)
			return EXIT_INTERNAL;
	e = options_parse(argc, argv, &options);
	if (e != 0)
		return e > 0 ? EXIT_MEASURED : (int) failure_code();
	e = run(&options);
	/* Results that could not be written are no results. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		(void) failure(-EIO, EXIT_INTERNAL, "cannot write the results to standard output: %s", strerror(errno));
		return EXIT_INTERNAL;
	}
	return e;
}
