/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "control/strangers.h"
#include "finish.h"
#include "measure/place.h"
#include "personality.h"
#include "worker.h"

enum {
	SERVE_LISTENERS_MAX = 4,
	SERVE_WORKERS_MAX = 256,        /* at once; one more waits */
	SERVE_GRACE_MS = 3000,          /* for workers to end after SIGTERM, before SIGKILL */
};

struct worker {
	pid_t pid;                      /* 0: this place is free */
	int fd;                         /* our end of the pair; -1: closed */
	bool answered;                  /* its meeting is over; it tells its client and ends */
	bool waiting;                   /* in a meeting: */
	struct meeting_request meeting;
	uint64_t deadline_ns;
};

struct server {
	const struct options *options;
	int listeners[SERVE_LISTENERS_MAX];
	int n_listeners;
	int signals;
	struct strangers strangers;
	struct worker workers[SERVE_WORKERS_MAX];
	unsigned n_workers, workers_max;
	bool stopping;
	int code;                       /* --once: what the client that was served came to */
};

/* What one turn waits for: signals, listeners, workers, and then strangers. */
struct waits {
	struct pollfd p[1 + SERVE_LISTENERS_MAX + SERVE_WORKERS_MAX + STRANGERS_MAX];
	struct worker *workers[SERVE_WORKERS_MAX];
	unsigned strangers[STRANGERS_MAX];
	size_t first_worker, n_workers, n_strangers;
};

/* In the child: of the listener's, only what a job needs stays. */
static void become_worker(struct server *s, struct control *c, int pair) {
	sigset_t none;

	(void) sigemptyset(&none);
	(void) sigprocmask(SIG_SETMASK, &none, NULL);
	strangers_close(&s->strangers);
	for (int i = 0; i < s->n_listeners; i++)
		s->listeners[i] = close_fd(s->listeners[i]);
	for (size_t i = 0; i < SERVE_WORKERS_MAX; i++)
		s->workers[i].fd = close_fd(s->workers[i].fd);
	s->signals = close_fd(s->signals);
	exit(finish(worker_run(s->options, c, pair)));
}

static struct worker *free_place(struct server *s) {
	for (size_t i = 0; i < SERVE_WORKERS_MAX; i++)
		if (s->workers[i].pid == 0)
			return &s->workers[i];
	return NULL;
}

/* For a client that has proved itself: a crash, CPU time and what libraries read from the environment are its own. */
static void start_worker(struct server *s, struct control *client) {
	_cleanup_(control_closep) struct control *c = client;
	_cleanup_close_ int ours = -1, theirs = -1;
	struct worker *w = free_place(s);
	int pair[2];
	pid_t pid;

	if (!w || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		notice("cannot serve a client: %s", strerror(errno));
		return;
	}
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid == 0) {
		(void) close(ours);
		become_worker(s, c, theirs);
	}
	if (pid < 0) {
		notice("cannot start a process for a client: %s", strerror(errno));
		return;
	}
	*w = (struct worker) { .pid = pid, .fd = ours };
	ours = -1;
	s->n_workers++;
}

static bool has_room(const struct server *s) {
	return s->n_workers < s->workers_max;
}

static void accept_clients(struct server *s, int listener) {
	/* So few that none has to go before it was heard. */
	for (int i = 0; i < STRANGERS_MAX / 4; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		strangers_admit(&s->strangers, fd, s->options->token_file[0] != '\0');
	}
}

static void hear_strangers(struct server *s, const struct waits *w) {
	const struct pollfd *p = w->p + w->first_worker + w->n_workers;

	for (size_t i = 0; i < w->n_strangers && has_room(s); i++) {
		struct control *c = p[i].revents ? strangers_hear(&s->strangers, w->strangers[i],
								  s->options->token_file) : NULL;

		if (c)
			start_worker(s, c);
	}
}

static void answer(struct worker *w, uint32_t arrived, uint32_t parties) {
	struct meeting_answer a = { arrived, parties };

	w->waiting = false;
	w->answered = true;
	/* A worker that died meanwhile needs no answer. */
	(void) send(w->fd, &a, sizeof(a), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool same_meeting(const struct worker *a, const struct worker *b) {
	return a->pid && b->pid && a->waiting && b->waiting && streq(a->meeting.flow, b->meeting.flow);
}

/* A party has come: if it is the last one, all of them may go. */
static void check_meeting(struct server *s, struct worker *w) {
	uint32_t arrived = 0, parties = w->meeting.parties;

	for (size_t i = 0; i < SERVE_WORKERS_MAX; i++) {
		struct worker *other = &s->workers[i];

		if (!same_meeting(w, other))
			continue;
		if (other->meeting.parties != parties) {
			answer(w, 0, other->meeting.parties);
			return;
		}
		arrived++;
	}
	if (arrived < parties)
		return;
	for (size_t i = 0; i < SERVE_WORKERS_MAX; i++)
		if (&s->workers[i] != w && same_meeting(w, &s->workers[i]))
			answer(&s->workers[i], arrived, parties);
	answer(w, arrived, parties);
}

static void hear_worker(struct server *s, struct worker *w) {
	struct meeting_request m;

	if (recv(w->fd, &m, sizeof(m), MSG_DONTWAIT) != sizeof(m)) {
		/* Gone, or going: its process is collected on SIGCHLD. */
		w->fd = close_fd(w->fd);
		w->waiting = false;
		return;
	}
	m.flow[sizeof(m.flow) - 1] = '\0';
	w->meeting = m;
	w->waiting = true;
	w->deadline_ns = monotonic_ns() + m.timeout_ms * NSEC_PER_MSEC;
	check_meeting(s, w);
}

static void expire_meetings(struct server *s) {
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < SERVE_WORKERS_MAX; i++) {
		struct worker *w = &s->workers[i];
		uint32_t arrived = 0;

		if (!w->pid || !w->waiting || now < w->deadline_ns)
			continue;
		for (size_t k = 0; k < SERVE_WORKERS_MAX; k++)
			arrived += same_meeting(w, &s->workers[k]);
		answer(w, arrived, w->meeting.parties);
	}
}

/* --once: the first client that wanted something was the last, however it ended. */
static void end_once(struct server *s, int status) {
	if (s->stopping || (WIFEXITED(status) && WEXITSTATUS(status) == WORKER_STRANGER))
		return;
	s->stopping = true;
	s->code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_INTERNAL;
}

static void collect_workers(struct server *s) {
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < SERVE_WORKERS_MAX; i++) {
			struct worker *w = &s->workers[i];

			if (w->pid != pid)
				continue;
			if (WIFSIGNALED(status) && !s->stopping)
				notice("job process %d ended by signal %d (%s); other jobs go on", (int) pid,
				       WTERMSIG(status), strsignal(WTERMSIG(status)));
			if (s->options->once)
				end_once(s, status);
			w->fd = close_fd(w->fd);
			*w = (struct worker) { .fd = -1 };
			s->n_workers--;
		}
}

static void hear_signal(struct server *s) {
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			collect_workers(s);
		else
			s->stopping = true;
	}
}

static int poll_timeout(const struct server *s) {
	uint64_t now = monotonic_ns(), next = has_room(s) ? strangers_deadline(&s->strangers) : UINT64_MAX;

	for (size_t i = 0; i < SERVE_WORKERS_MAX; i++)
		if (s->workers[i].pid && s->workers[i].waiting)
			next = MIN(next, s->workers[i].deadline_ns);
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int) ((next - now) / NSEC_PER_MSEC + 1);
}

static size_t gather(struct server *s, struct waits *w) {
	size_t n = 0;

	w->p[n++] = (struct pollfd) { .fd = s->signals, .events = POLLIN };
	for (int i = 0; i < s->n_listeners; i++)
		w->p[n++] = (struct pollfd) { .fd = has_room(s) ? s->listeners[i] : -1, .events = POLLIN };
	w->first_worker = n;
	for (size_t i = 0; i < SERVE_WORKERS_MAX; i++)
		if (s->workers[i].pid && s->workers[i].fd >= 0) {
			w->workers[n - w->first_worker] = &s->workers[i];
			w->p[n++] = (struct pollfd) { .fd = s->workers[i].fd, .events = POLLIN };
		}
	w->n_workers = n - w->first_worker;
	w->n_strangers = has_room(s) ? strangers_poll(&s->strangers, w->p + n, w->strangers) : 0;
	return n + w->n_strangers;
}

static int serve_loop(struct server *s) {
	struct waits w;

	while (!s->stopping) {
		size_t n = gather(s, &w);

		if (poll(w.p, (nfds_t) n, poll_timeout(s)) < 0 && errno != EINTR)
			return failure(-errno, EXIT_INTERNAL, "cannot wait for clients: %s", strerror(errno));
		for (size_t i = 0; i < w.n_workers; i++)
			if (w.p[w.first_worker + i].revents)
				hear_worker(s, w.workers[i]);
		hear_strangers(s, &w);
		if (has_room(s))
			strangers_expire(&s->strangers);
		for (size_t i = 1; i < w.first_worker; i++)
			if (w.p[i].revents)
				accept_clients(s, w.p[i].fd);
		expire_meetings(s);
		if (w.p[0].revents)
			hear_signal(s);
	}
	return 0;
}

/* Every process that we started, we end. A party that is about to hear that all came still hears it. */
static void stop_workers(struct server *s) {
	uint64_t deadline = monotonic_ns() + SERVE_GRACE_MS * NSEC_PER_MSEC;
	int signal = SIGTERM;

	s->stopping = true;
	while (s->n_workers > 0) {
		struct pollfd p = { .fd = s->signals, .events = POLLIN };

		for (size_t i = 0; signal && i < SERVE_WORKERS_MAX; i++)
			if (s->workers[i].pid && (signal == SIGKILL || !s->workers[i].answered))
				(void) kill(s->workers[i].pid, signal);
		signal = 0;
		(void) poll(&p, 1, 100);
		hear_signal(s);
		collect_workers(s);
		if (monotonic_ns() >= deadline) {
			signal = SIGKILL;
			deadline = UINT64_MAX;
		}
	}
}

/* Written whole and then named, so that whoever waits for it never reads half. */
static int write_ready_file(const char *path, uint16_t port) {
	char temporary[PATH_MAX + 8];
	bool written;
	FILE *f;

	if (!path[0])
		return 0;
	(void) snprintf(temporary, sizeof(temporary), "%s.new", path);
	f = fopen(temporary, "we");
	written = f && fprintf(f, "%d %u\n", (int) getpid(), port) > 0;
	if (f && fclose(f) != 0)
		written = false;
	if (!written || rename(temporary, path) < 0)
		return failure(-errno, EXIT_INTERNAL, "cannot write the ready file %s: %s", path, strerror(errno));
	return 0;
}

static int open_signals(void) {
	sigset_t set;

	(void) sigemptyset(&set);
	(void) sigaddset(&set, SIGTERM);
	(void) sigaddset(&set, SIGINT);
	(void) sigaddset(&set, SIGCHLD);
	(void) sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int command_serve(const struct options *o) {
	struct server *s;
	const bool has_token = o->token_file[0] != '\0';
	int e, code;

	s = calloc(1, sizeof(*s));
	if (!s)
		return EXIT_HOST;
	s->options = o;
	/* Only to fail early. */
	e = token_read(o->token_file, &s->strangers.token);
	if (e == 0)
		e = place_check(&o->job);
	if (e < 0) {
		free(s);
		return (int) failure_code();
	}
	/* One after the other, so that none is cut off when another ends. */
	s->workers_max = o->once ? 1 : SERVE_WORKERS_MAX;
	for (size_t i = 0; i < SERVE_WORKERS_MAX; i++)
		s->workers[i].fd = -1;
	s->signals = open_signals();
	e = s->n_listeners = socket_listen(o->bind, o->port, has_token, s->listeners, SERVE_LISTENERS_MAX);
	if (e > 0)
		e = write_ready_file(o->ready_file, o->port);
	if (e == 0) {
		notice("serving on port %u%s", o->port, has_token ? "" : " (loopback only: no token)");
		if (o->personality) {
			(void) printf("Listening on port %u for client to connect...\n", o->port);
			(void) fflush(stdout);
		}
		e = serve_loop(s);
	}
	strangers_close(&s->strangers);
	stop_workers(s);
	for (int i = 0; i < s->n_listeners; i++)
		s->listeners[i] = close_fd(s->listeners[i]);
	if (o->ready_file[0] && s->n_listeners > 0)
		(void) unlink(o->ready_file);
	(void) close_fd(s->signals);
	code = s->code;
	free(s);
	return e < 0 ? (int) failure_code() : code;
}
