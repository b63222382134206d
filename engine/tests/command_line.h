/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command line as a test writes it, parsed into `options`; for tests of what the words mean. Include after cmocka.h.
 */
#pragma once

#include "base/message.h"
#include "cli/options.h"

static struct options options; /* too large for a small stack */

/* Splits at blanks; the first word is the program's name. */
static inline int parse_line(const char *text) {
	static char copy[1024];
	char *argv[64], *rest = copy;
	int argc = 0;

	assert_int_equal(copy_string(copy, sizeof(copy), text), 0);
	for (char *word; (word = strsep(&rest, " "));)
		argv[argc++] = word;
	argv[argc] = NULL;
	failure_reset();
	return options_parse(argc, argv, &options);
}

static inline void refused_line(const char *text, const char *part) {
	options.command = COMMAND_MAX;
	assert_true(parse_line(text) < 0);
	assert_int_equal(failure_code(), EXIT_USAGE);
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
	assert_int_equal(options.command, COMMAND_MAX); /* nothing is set on failure */
}
