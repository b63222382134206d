/* SPDX-License-Identifier: Apache-2.0 */
/* A command line of perch that says what another program's command line does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/message.h"
#include "job/job.h"

enum { WORDS_MAX = 64 };

struct words {
	char *argv[WORDS_MAX + 1];
	int argc;
	char text[2 * JOB_DEVICES_TEXT + 2048]; /* holds every word: the longest are two lists of devices and a host */
	size_t used;
	bool full;                      /* a word did not fit, and is not there */
};

void say(struct words *w, const char *format, ...) _printf_(2, 3);
void say_if(struct words *w, bool condition, const char *word);
