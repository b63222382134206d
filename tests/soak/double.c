/*
 * Test double of two faults, by LD_PRELOAD, in every process of one host:
 *   PERCH_TEST_CLOCK=FILE   the clock on the wall is ahead by the seconds that FILE says; no file: it is right
 *   PERCH_TEST_LEAK=NAME    who is called NAME (/proc/self/comm) leaks 128 KiB a second, some 470 MB an hour,
 *                           each page touched: in minutes no less can be told from a warm-up
 * Both ride on the clock, which everyone reads all the time; FILE and name are looked at once a second.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { LEAK_BYTES = 128 << 10 };

/* The kernel itself: what stands between is what this double is. */
static int real(clockid_t id, struct timespec *t) { return (int) syscall(SYS_clock_gettime, id, t); }

static double offset;

static void read_offset(void) {
	const char *path = getenv("PERCH_TEST_CLOCK");
	FILE *f = path ? fopen(path, "re") : NULL;

	if (!f || fscanf(f, "%lf", &offset) != 1)
		offset = 0;
	if (f)
		(void) fclose(f);
}

static bool is_called(const char *name) {
	char own[32] = "";
	FILE *f = fopen("/proc/self/comm", "re");

	if (!f)
		return false;
	if (fgets(own, sizeof(own), f))
		own[strcspn(own, "\n")] = '\0';
	(void) fclose(f);
	return strcmp(own, name) == 0;
}

static void leak(void) {
	const char *name = getenv("PERCH_TEST_LEAK");
	char *p = name && is_called(name) ? malloc(LEAK_BYTES) : NULL;

	for (int i = 0; p && i < LEAK_BYTES; i += 4096)
		((volatile char *) p)[i] = 1;
}

static void look(void) {
	static __thread bool inside;
	static time_t last;
	struct timespec now;

	if (inside || real(CLOCK_MONOTONIC, &now) != 0 || now.tv_sec == last)
		return;
	inside = true;
	last = now.tv_sec;
	read_offset();
	leak();
	inside = false;
}

int clock_gettime(clockid_t id, struct timespec *t) {
	int e = real(id, t);

	look();
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		t->tv_sec += (time_t) offset;
	return e;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	struct timespec now;

	(void) zone;
	(void) clock_gettime(CLOCK_REALTIME, &now);
	*t = (struct timeval) { .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
	return 0;
}

time_t time(time_t *t) {
	struct timespec now;

	(void) clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}
