/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <stdarg.h>
#include <stdio.h>

void say(struct words *w, const char *format, ...) {
	size_t room = sizeof(w->text) - w->used;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(w->text + w->used, room, format, ap);
	va_end(ap);
	w->full |= n < 0 || (size_t) n >= room || w->argc == WORDS_MAX;
	if (w->full)
		return;
	w->argv[w->argc++] = w->text + w->used;
	w->used += (size_t) n + 1;
}

void say_if(struct words *w, bool condition, const char *word) {
	if (condition)
		say(w, "%s", word);
}
