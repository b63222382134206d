/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a soak: lines that are on disk as soon as they are said, or else kept in memory until the disk takes
 * them. Whatever ends the process, the file is whole lines and at most one half behind them.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "base/util.h"

/*
 * In memory while the disk takes nothing: a day of minutes, with 11 KiB each,
 * of which a histogram of a busy day takes 8.
 */
enum { SOAK_KEPT_MAX = 16 << 20 };

struct soak_file {
	const char *path;
	int fd;
	off_t end;              /* of what is whole, and on disk */
	char *kept;             /* what is not yet; n_kept bytes */
	size_t n_kept;
	size_t kept_max;
	uint64_t dropped;       /* lines for which there was no room any more */
	bool failing;
};

/* Takes one line; negative (said): it does not belong here. */
typedef int (*soak_line)(const json_t *line, void *userdata);

/*
 * Opens or makes the file, for this process alone, and reads what is in it.
 * The half of a line at its end is cut off. Negative: said.
 */
int soak_file_open(const char *path, soak_line each, void *userdata, struct soak_file *ret);

/*
 * Appends a line and waits until the disk has it. A disk that does not take it is said once;
 * the line is kept, and written before the next. False: there was no room to keep it either, and it is dropped.
 */
bool soak_file_append(struct soak_file *f, const char *text);

/* Lines that the disk has not taken, with their ends; NULL: none. */
const char *soak_file_kept(const struct soak_file *f);

void soak_file_close(struct soak_file *f);
