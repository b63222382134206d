/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers that every file may use: cleanup attributes, arithmetic, safe strings. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _pure_ __attribute__((pure))

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define NSEC_PER_USEC UINT64_C(1000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_SEC UINT64_C(1000000000)

/* Closes and answers -1, so that `fd = close_fd(fd)` leaves no stale number; keeps errno. */
static inline int close_fd(int fd) {
	int saved = errno;

	if (fd >= 0)
		(void) close(fd);
	errno = saved;
	return -1;
}

static inline void close_fdp(int *fd) {
	*fd = close_fd(*fd);
}

static inline void freep(void *p) {
	free(*(void **) p);
}

#define _cleanup_close_ _cleanup_(close_fdp)
#define _cleanup_free_ _cleanup_(freep)

static inline bool streq(const char *a, const char *b) {
	return strcmp(a, b) == 0;
}

/* What a test's stand-in for a device calls itself: its results are simulated, and prove nothing about hardware. */
#define SIMULATED_MARK "sim_"

static inline bool is_simulated_name(const char *name) {
	return strncmp(name, SIMULATED_MARK, sizeof(SIMULATED_MARK) - 1) == 0;
}

/* Copies with a guaranteed end; answers -ENAMETOOLONG when the text does not fit (nothing is cut in silence). */
static inline int copy_string(char *ret, size_t size, const char *text) {
	size_t n = strlen(text);

	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(ret, text, n + 1);
	return 0;
}
