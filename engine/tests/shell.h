/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that compose trees of files: a command line, which must exit with 0. Include cmocka.h before it. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"

static inline _printf_(1, 2) void shell(const char *format, ...) {
	char command[1024];
	va_list ap;

	va_start(ap, format);
	(void) vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}
