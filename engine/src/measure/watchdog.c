/* SPDX-License-Identifier: Apache-2.0 */
#include "watchdog.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/cpu_list.h"

/* Four looks a second: late by a quarter at most, and too seldom to be seen in a measurement. */
#define LOOK_NS (250 * NSEC_PER_MSEC)

/* What a library waits for from a peer that has gone will not come. */
static uint64_t patience(const struct watchdog *w) {
	struct pollfd p = { .fd = w->fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 ? MIN(w->limit_ns, NSEC_PER_SEC) : w->limit_ns;
}

static void *watch(void *arg) {
	struct watchdog *w = arg;
	uint64_t seen = 0, since = monotonic_ns(), now;

	stand_aside();
	while (!w->stop) {
		struct pollfd stop = { .fd = w->stop_fd, .events = POLLIN };

		/* woken to stop, so that nobody waits for the rest of the time */
		(void) poll(&stop, 1, (int) (LOOK_NS / NSEC_PER_MSEC));
		now = atomic_load_explicit(w->heart, memory_order_relaxed);
		if (!w->armed || now != seen) {
			seen = now;
			since = monotonic_ns();
		} else if (monotonic_ns() - since >= patience(w) && !w->stop)
			w->on_stall(w->userdata);
	}
	return NULL;
}

int watchdog_start(struct watchdog *w, const _Atomic uint64_t *heart, uint64_t limit_ns, int fd,
		   void (*on_stall)(void *), void *userdata) {
	sigset_t all, before;
	int e;

	*w = (struct watchdog) { .heart = heart, .fd = fd, .on_stall = on_stall, .userdata = userdata };
	w->limit_ns = limit_ns;
	w->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (w->stop_fd < 0)
		return failure(-errno, EXIT_HOST, "cannot watch a run: %s", strerror(errno));
	/* Signals are the main thread's. */
	(void) sigfillset(&all);
	(void) pthread_sigmask(SIG_SETMASK, &all, &before);
	e = pthread_create(&w->thread, NULL, watch, w);
	(void) pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (e != 0) {
		w->stop_fd = close_fd(w->stop_fd);
		return failure(-e, EXIT_HOST, "cannot start a thread: %s", strerror(e));
	}
	w->running = true;
	return 0;
}

void watchdog_stop(struct watchdog *w) {
	if (!w->running)
		return;
	w->stop = true;
	(void) eventfd_write(w->stop_fd, 1);
	(void) pthread_join(w->thread, NULL);
	w->stop_fd = close_fd(w->stop_fd);
	w->running = false;
}
