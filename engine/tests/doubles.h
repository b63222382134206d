/* SPDX-License-Identifier: Apache-2.0 */
/* For tests over the doubles of GPU runtimes (doubles/fake_gpu.h). */
#pragma once

#include <limits.h>
#include <stdio.h>

#include "base/util.h"

/*
 * They lie beside this program; dynamic linking reads its search path once, at the beginning,
 * so the program begins again.
 */
static inline void doubles_find(char **argv) {
	char path[PATH_MAX], directory[PATH_MAX + 16];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *now = getenv("LD_LIBRARY_PATH");

	if (n < 0)
		abort();
	path[n] = '\0';
	*strrchr(path, '/') = '\0';
	(void) snprintf(directory, sizeof(directory), "%s/../doubles", path);
	if (now && streq(now, directory))
		return;
	(void) setenv("LD_LIBRARY_PATH", directory, 1);
	(void) execv("/proc/self/exe", argv);
	abort();
}

static inline void doubles_reset(void) {
	static const char *const settings[] = { "COUNT", "PCI", "MEMORY", "COPY_FAIL", "DMABUF", "PCIE", "VISIBLE",
					      "LOG" };
	char name[64];

	for (size_t i = 0; i < ELEMENTSOF(settings); i++) {
		(void) snprintf(name, sizeof(name), "PERCH_FAKE_GPU_%s", settings[i]);
		(void) unsetenv(name);
	}
}
