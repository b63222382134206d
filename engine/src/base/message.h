/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for people, on standard error. Standard output carries results only.
 *
 * A failing function knows best what its error means, so it states it once with failure(); callers only hand the code
 * on. The last statement is also kept, so that the record of a failed size and the peer can carry the same words.
 */
#pragma once

#include "exit_codes.h"
#include "util.h"

enum { FAILURE_TEXT_MAX = 512 };

/* Says "perch: TEXT", remembers text and exit code, and answers the negative error handed in (never 0). */
int failure(int error, enum exit_code code, const char *format, ...) _printf_(3, 4);

/* Remembers like failure(), but says nothing: for text that came from the peer and is said by the caller. */
int failure_quiet(int error, enum exit_code code, const char *format, ...) _printf_(3, 4);

/* The first failure since the last failure_reset(): later ones are only its consequences. Empty text: none. */
const char *failure_text(void);
enum exit_code failure_code(void);
void failure_reset(void);

/*
 * True: from here on this thread has a first failure of its own, none yet, and prints none: its caller reports them.
 * False: as before.
 */
void failure_keep_apart(bool apart);

/* Says "perch: TEXT"; changes nothing. */
void notice(const char *format, ...) _printf_(1, 2);
