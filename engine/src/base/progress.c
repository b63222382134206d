/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include "clock.h"
#include "cpu_list.h"

/* What is over within a second needs no line. */
#define FIRST_NS NSEC_PER_SEC
enum { DRAW_MS = 500 };

#define CLEAR_LINE "\r\033[K"

static struct {
	pthread_mutex_t lock;           /* over all but `done` */
	pthread_t thread;
	bool running, drawn;
	unsigned hidden;                /* somebody else writes to the terminal */
	int stop_fd;
	uint64_t start_ns;
	struct progress progress;
} line = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic uint64_t messages_done;

static void print_left(char *ret, size_t size, uint64_t ns) {
	unsigned long long s = (ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC;

	if (s < 120)
		(void) snprintf(ret, size, "%llu s left", s);
	else if (s < 2 * 3600)
		(void) snprintf(ret, size, "%llu min left", (s + 59) / 60);
	else
		(void) snprintf(ret, size, "%llu h %02llu min left", s / 3600, s % 3600 / 60);
}

void progress_text(const struct progress *p, uint64_t now_ns, uint64_t done, char ret[PROGRESS_LINE_MAX]) {
	uint64_t elapsed = now_ns - p->begin_ns, left = p->duration_ns - MIN(elapsed, p->duration_ns);
	double part = p->count ? (double) MIN(done, p->count) / (double) p->count : 0;
	char text[64] = "warm-up";

	if (p->begin_ns && p->duration_ns)
		print_left(text, sizeof(text), left + (p->steps - p->step) * p->duration_ns);
	else if (p->begin_ns && part > 0) {
		int n = snprintf(text, sizeof(text), "%.0f %%, ", 100 * part);
		double rest = (double) elapsed * (1 - part) / part;

		/* Later sizes take another time, which is not known yet. */
		print_left(text + n, sizeof(text) - (size_t) n, (uint64_t) MIN(rest, 1e18)); /* within 64 bits */
		if (p->steps > p->step)
			strcat(text, " at this size"); /* there is room: numbers have 20 digits at most */
	} else if (p->begin_ns)
		(void) snprintf(text, sizeof(text), "measuring");
	(void) snprintf(ret, PROGRESS_LINE_MAX, "perch: %s, %zu of %zu: %s", p->what, p->step, p->steps, text);
}

/* A line that wraps could not be removed. */
static size_t columns(void) {
	struct winsize w;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1u : 79;
}

/* Under the lock. */
static void draw(void) {
	uint64_t now = monotonic_ns();
	char text[PROGRESS_LINE_MAX], out[PROGRESS_LINE_MAX + sizeof(CLEAR_LINE)];
	int n;

	if (line.hidden || line.progress.step == 0 || now - line.start_ns < FIRST_NS)
		return;
	progress_text(&line.progress, now, atomic_load_explicit(&messages_done, memory_order_relaxed), text);
	n = snprintf(out, sizeof(out), CLEAR_LINE "%.*s", (int) MIN(columns(), sizeof(text)), text);
	line.drawn = write(STDERR_FILENO, out, (size_t) n) > 0;
}

/* Under the lock. */
static void clear(void) {
	if (line.drawn)
		(void) !write(STDERR_FILENO, CLEAR_LINE, strlen(CLEAR_LINE));
	line.drawn = false;
}

static void *keep_drawing(void *arg) {
	struct pollfd stop = { .fd = line.stop_fd, .events = POLLIN };

	(void) arg;
	stand_aside();
	while (poll(&stop, 1, DRAW_MS) <= 0) {
		(void) pthread_mutex_lock(&line.lock);
		draw();
		(void) pthread_mutex_unlock(&line.lock);
	}
	return NULL;
}

static bool is_terminal(void) {
	const char *kind = getenv("TERM");

	return isatty(STDERR_FILENO) && kind && *kind && !streq(kind, "dumb");
}

void progress_start(size_t steps, uint64_t count, uint64_t duration_ns) {
	sigset_t all, before;

	if (line.running || !is_terminal())
		return;
	line.progress = (struct progress) { .steps = steps, .count = count, .duration_ns = duration_ns };
	line.start_ns = monotonic_ns();
	line.stop_fd = eventfd(0, EFD_CLOEXEC);
	if (line.stop_fd < 0)
		return; /* measuring goes on without it */
	/* Signals are the main thread's. */
	(void) sigfillset(&all);
	(void) pthread_sigmask(SIG_SETMASK, &all, &before);
	line.running = pthread_create(&line.thread, NULL, keep_drawing, NULL) == 0;
	(void) pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!line.running)
		line.stop_fd = close_fd(line.stop_fd);
}

void progress_step(const char *format, ...) {
	va_list ap;

	(void) pthread_mutex_lock(&line.lock);
	va_start(ap, format);
	(void) vsnprintf(line.progress.what, sizeof(line.progress.what), format, ap);
	va_end(ap);
	line.progress.step++;
	line.progress.begin_ns = 0;
	progress_done(0);
	(void) pthread_mutex_unlock(&line.lock);
}

void progress_begin(void) {
	(void) pthread_mutex_lock(&line.lock);
	line.progress.begin_ns = monotonic_ns();
	progress_done(0);
	(void) pthread_mutex_unlock(&line.lock);
}

void progress_done(uint64_t messages) {
	atomic_store_explicit(&messages_done, messages, memory_order_relaxed);
}

void progress_hide(void) {
	(void) pthread_mutex_lock(&line.lock);
	line.hidden++;
	clear();
	(void) pthread_mutex_unlock(&line.lock);
}

void progress_show(void) {
	(void) pthread_mutex_lock(&line.lock);
	line.hidden--;
	(void) pthread_mutex_unlock(&line.lock);
}

void progress_stop(void) {
	if (!line.running)
		return;
	(void) eventfd_write(line.stop_fd, 1);
	(void) pthread_join(line.thread, NULL);
	line.stop_fd = close_fd(line.stop_fd);
	line.running = false;
	clear();
}
