/*
 * Witness of the machine's own pauses: one thread a processor sleeps for 5 ms again and again,
 * and says when it came back more than 10 ms late: "START END", in seconds of the wall clock.
 * A soak that stood still at that time was stopped by the machine, not by its network.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t id) {
	struct timespec t;

	(void) clock_gettime(id, &t);
	return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static void *watch(void *arg) {
	const struct timespec nap = { .tv_nsec = 5000000 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((long) arg, &set);
	(void) pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	for (double last = now(CLOCK_MONOTONIC), t;; last = t) {
		(void) clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		t = now(CLOCK_MONOTONIC);
		if (t - last > 0.015) {
			double end = now(CLOCK_REALTIME);

			(void) printf("%.3f %.3f\n", end - (t - last), end);
			(void) fflush(stdout);
		}
	}
	return NULL;
}

int main(void) {
	pthread_t thread;

	for (long i = 1; i < sysconf(_SC_NPROCESSORS_ONLN); i++)
		(void) pthread_create(&thread, NULL, watch, (void *) i);
	(void) watch((void *) 0L);
}
