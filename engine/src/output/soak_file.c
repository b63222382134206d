/* SPDX-License-Identifier: Apache-2.0 */
#include "soak_file.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/file.h>

#include "base/message.h"

/* One line, without its end. 0: it belongs here; 1: it is no JSON object; negative: said. */
static int read_line(const char *text, size_t n, soak_line each, void *userdata) {
	json_t *line = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	int e;

	e = json_is_object(line) ? each(line, userdata) : 1;
	json_decref(line);
	return e < 0 ? e : e > 0;
}

/* Whatever stands behind the last whole line was being written when a process, or the host, died. */
static int cut_end(struct soak_file *f, off_t size) {
	if (size == f->end)
		return 0;
	notice("%s: its last %lld bytes are half a line, and are cut off", f->path, (long long) (size - f->end));
	if (ftruncate(f->fd, f->end) < 0)
		return failure(-errno, EXIT_INTERNAL, "cannot cut %s at its last whole line: %s", f->path,
			       strerror(errno));
	return 0;
}

static int read_lines(struct soak_file *f, soak_line each, void *userdata) {
	_cleanup_free_ char *text = NULL;
	size_t size = 0, number = 0;
	off_t at = 0, bad = -1;
	FILE *in = fdopen(fcntl(f->fd, F_DUPFD_CLOEXEC, 0), "r");
	ssize_t n;
	int e = 0;

	if (!in)
		return failure(-errno, EXIT_INTERNAL, "cannot read %s: %s", f->path, strerror(errno));
	while (e >= 0 && (n = getline(&text, &size, in)) > 0) {
		number++;
		at += n;
		if (bad >= 0)
			e = failure(-EBADMSG, EXIT_INTERNAL,
				    "%s, line %zu: no record of a soak, though others follow it; give another file",
				    f->path, number - 1);
		else if (text[n - 1] != '\n')
			break;
		else
			e = read_line(text, (size_t) n - 1, each, userdata);
		/* A file system may have kept the length of a last line, and not what was in it. */
		if (e > 0)
			bad = at;
		else if (e == 0)
			f->end = at;
	}
	if (e >= 0 && ferror(in))
		e = failure(-EIO, EXIT_INTERNAL, "cannot read %s: %s", f->path, strerror(errno));
	(void) fclose(in);
	return e < 0 ? e : cut_end(f, at);
}

/*
 * A new file has a name only once its folder is on disk, too. Some file systems sync no folders (EINVAL, open(2)):
 * they have no more to give. The disk that takes nothing is said with the first line.
 */
static void sync_folder(const char *path) {
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		(void) fsync(fd);
}

int soak_file_open(const char *path, soak_line each, void *userdata, struct soak_file *ret) {
	struct soak_file f = { .path = path, .kept_max = SOAK_KEPT_MAX };
	int e;

	f.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (f.fd < 0)
		return failure(-errno, EXIT_INTERNAL, "--soak %s: cannot be written: %s", path, strerror(errno));
	if (flock(f.fd, LOCK_EX | LOCK_NB) < 0) {
		e = failure(-errno, EXIT_INTERNAL,
			    "--soak %s: another perch keeps its soak there; give another file, or end it first", path);
		f.fd = close_fd(f.fd);
		return e;
	}
	e = read_lines(&f, each, userdata);
	if (e < 0) {
		f.fd = close_fd(f.fd);
		return e;
	}
	if (f.end == 0)
		sync_folder(path);
	*ret = f;
	return 0;
}

/* Writes all that is kept, or nothing: half a line in the middle would be none for any reader. */
static int flush(struct soak_file *f) {
	size_t done = 0;
	int e = 0;

	while (e == 0 && done < f->n_kept) {
		ssize_t n = pwrite(f->fd, f->kept + done, f->n_kept - done, f->end + (off_t) done);

		if (n > 0)
			done += (size_t) n;
		else if (n == 0 || errno != EINTR)
			e = n == 0 ? -ENOSPC : -errno;
	}
	if (e == 0 && fsync(f->fd) < 0)
		e = -errno;
	if (e == 0) {
		f->end += (off_t) f->n_kept;
		f->n_kept = 0;
		return 0;
	}
	(void) !ftruncate(f->fd, f->end);
	return e;
}

static bool keep(struct soak_file *f, const char *text) {
	size_t n = strlen(text);
	char *grown;

	if (f->n_kept + n + 1 > f->kept_max)
		return false;
	grown = realloc(f->kept, f->n_kept + n + 2);
	if (!grown)
		return false;
	f->kept = grown;
	memcpy(f->kept + f->n_kept, text, n);
	f->n_kept += n + 1;
	f->kept[f->n_kept - 1] = '\n';
	f->kept[f->n_kept] = '\0';
	return true;
}

bool soak_file_append(struct soak_file *f, const char *text) {
	bool kept = keep(f, text);
	int e;

	e = flush(f);
	if (!kept && e == 0)
		kept = keep(f, text) && (e = flush(f)) == 0; /* there is room again */
	f->dropped += !kept;
	if (f->dropped == 1 && !kept)
		notice("%s: %zu MiB of lines wait in memory, which is the most; later ones are counted only", f->path,
		       f->kept_max >> 20);
	if (e < 0 && !f->failing)
		notice("cannot write %s: %s; the soak goes on and keeps up to %zu MiB of lines in memory", f->path,
		       strerror(-e), f->kept_max >> 20);
	if (e == 0 && f->failing)
		notice("%s is written again, with all lines that were kept", f->path);
	f->failing = e < 0;
	return kept;
}

const char *soak_file_kept(const struct soak_file *f) {
	return f->n_kept ? f->kept : NULL;
}

void soak_file_close(struct soak_file *f) {
	free(f->kept);
	f->kept = NULL;
	f->fd = close_fd(f->fd);
}
