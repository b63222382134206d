/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "escape.h"
#include "progress.h"

struct first {
	char text[FAILURE_TEXT_MAX];
	enum exit_code code;
};

static struct first first_failure;

/* A thread that keeps its failures apart has its own. */
static _Thread_local struct first own_failure;
static _Thread_local bool apart;

static struct first *first_of_thread(void) {
	return apart ? &own_failure : &first_failure;
}

/* The threads of a transfer may fail at the same time. Who reads the words does so when they have ended. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(enum exit_code code, const char *format, va_list ap) _printf_(2, 0);

static void remember(enum exit_code code, const char *format, va_list ap) {
	struct first *first = first_of_thread();

	char text[FAILURE_TEXT_MAX];

	(void) vsnprintf(text, sizeof(text), format, ap);
	/* Only the first failure counts: what comes after it is its consequence, and would hide the cause. */
	(void) pthread_mutex_lock(&lock);
	if (first->text[0] == '\0') {
		first->code = code;
		escape_text(text, first->text, sizeof(first->text));
	}
	(void) pthread_mutex_unlock(&lock);
}

int failure(int error, enum exit_code code, const char *format, ...) {
	char text[FAILURE_TEXT_MAX];
	va_list ap, copy;

	va_start(ap, format);
	va_copy(copy, ap);
	remember(code, format, copy);
	va_end(copy);
	(void) vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (!apart)
		notice("%s", text);
	return error < 0 ? error : -EIO;
}

int failure_quiet(int error, enum exit_code code, const char *format, ...) {
	va_list ap;

	va_start(ap, format);
	remember(code, format, ap);
	va_end(ap);
	return error < 0 ? error : -EIO;
}

const char *failure_text(void) {
	return first_of_thread()->text;
}

enum exit_code failure_code(void) {
	const struct first *first = first_of_thread();

	return first->text[0] != '\0' ? first->code : EXIT_INTERNAL;
}

void failure_reset(void) {
	first_of_thread()->text[0] = '\0';
}

void failure_keep_apart(bool on) {
	apart = on;
	if (on)
		failure_reset();
}

void notice(const char *format, ...) {
	char text[FAILURE_TEXT_MAX], line[FAILURE_TEXT_MAX + 16] = "perch: ";
	const size_t n = strlen(line);
	va_list ap;

	va_start(ap, format);
	(void) vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	/* Part of it may come from a peer, which has proved nothing. */
	escape_text(text, line + n, sizeof(line) - n - 1);
	strcat(line, "\n"); /* room is kept by the -1 above */
	progress_hide();
	/* One write, so that lines of concurrent jobs do not mix. */
	(void) !write(STDERR_FILENO, line, strlen(line));
	progress_show();
}
