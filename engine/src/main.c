/* SPDX-License-Identifier: Apache-2.0 */
/* perch: measures a fabric between two hosts. */
#include <signal.h>

#include "backends/registry.h"
#include "base/message.h"
#include "cli/check.h"
#include "cli/client.h"
#include "cli/command_hist.h"
#include "cli/finish.h"
#include "cli/serve.h"

static int run(const struct options *o) {
	switch (o->command) {
	case COMMAND_SERVE:
		return command_serve(o);
	case COMMAND_LAT:
	case COMMAND_BW:
		return command_measure(o);
	case COMMAND_TRANSFER:
	case COMMAND_RATE:
		return command_transfer(o);
	case COMMAND_CHECK:
		return command_check(o);
	case COMMAND_HIST:
		return command_hist(o);
	case COMMAND_MEET:
		return command_meet(o);
	case COMMAND_DEVICES:
		return command_devices(o);
	case COMMAND_COMPLETION:
		return command_completion(o);
	default:
		return EXIT_INTERNAL;
	}
}

int main(int argc, char **argv) {
	struct options options;
	int e;

	/* A reader that has gone is an error of a write, not a reason to die with workers running. */
	(void) signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; backends[i]; i++)
		if (backend_check(backends[i]) < 0)
			return EXIT_INTERNAL;
	e = options_parse(argc, argv, &options);
	if (e < 0)
		return (int) failure_code();
	return finish(e > 0 ? EXIT_MEASURED : run(&options));
}
