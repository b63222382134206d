/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside, made fit for people's eyes and terminals; perch/model/text.py has the same rules. */
#pragma once

#include <stddef.h>

/*
 * Copies `text`, cut to `size` bytes with the end, on one line and without what moves a cursor, sets a colour or turns
 * the order of signs: such a sign becomes its escape, as in "\x1b[31m" or "\u202e", and so does a byte that is not
 * UTF-8.
 */
void escape_text(const char *text, char *ret, size_t size);
