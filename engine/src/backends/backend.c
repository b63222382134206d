/* SPDX-License-Identifier: Apache-2.0 */
#include "backend.h"

#include <time.h>

#include "base/message.h"

static const char *const level_names[LEVEL_MAX] = {
	[LEVEL_NONE] = "none",
	[LEVEL_INJECT] = "inject",
	[LEVEL_TRANSMIT] = "transmit",
	[LEVEL_DELIVERY] = "delivery",
};

int backend_check(const struct backend *b) {
	bool sleeps = b->facts->flags & BACKEND_SLEEPS;
	bool lanes = b->lanes && b->lanes->place && b->lanes->post_list && !b->lanes->arm == !sleeps;

	if (b->version != BACKEND_VERSION)
		return failure(-EINVAL, EXIT_INTERNAL, "backend %s: made for another version of the interface",
			       b->facts->name);
	if (!sleeps != !b->wait || !(b->facts->flags & BACKEND_LANES) != !lanes)
		return failure(-EINVAL, EXIT_INTERNAL,
			       "backend %s: its hooks are not those that backend_facts.c says it has", b->facts->name);
	if (!b->probe || !b->open || !b->local_address || !b->connect || !b->post || !b->post_receive || !b->poll ||
	    !b->close)
		return failure(-EINVAL, EXIT_INTERNAL, "backend %s: a required hook is missing", b->facts->name);
	return 0;
}

int backend_post_each(struct session *s, const struct list *list) {
	struct work w = { .op = list->op, .size = list->size };

	for (uint32_t i = 0; i < list->n; i++) {
		int e;

		w.slot = list->slot + i;
		w.flush = i + 1 == list->n;
		w.more = !w.flush;
		e = s->backend->post(s, &w);
		if (e == -EAGAIN)
			return (int) i;
		if (unlikely(e < 0))
			return e;
	}
	return (int) list->n;
}

int backend_sleep(struct pollfd *alarms, size_t n, uint64_t timeout_ns) {
	const struct timespec timeout = { .tv_sec = (time_t) (timeout_ns / NSEC_PER_SEC),
					  .tv_nsec = (long) (timeout_ns % NSEC_PER_SEC) };

	if (ppoll(alarms, n, &timeout, NULL) < 0 && errno != EINTR)
		return failure(-errno, EXIT_HOST, "cannot sleep for a completion: %s", strerror(errno));
	return 0;
}

int backend_wait(struct session *s, struct completion *ret, unsigned max, uint64_t timeout_ns, int wake_fd) {
	struct pollfd p[BACKEND_ALARMS + 1];
	int n;

	alarms_clear(p, BACKEND_ALARMS);
	p[BACKEND_ALARMS] = (struct pollfd) { .fd = wake_fd, .events = POLLIN };
	n = s->backend->lanes->arm(s, ret, max, p);
	if (n == 0) {
		n = backend_sleep(p, ELEMENTSOF(p), timeout_ns);
		if (n == 0)
			n = s->backend->lanes->arm(s, ret, max, p);
	}
	return n == -EAGAIN ? 0 : n;
}

const char *level_name(int level) {
	return level >= 0 && level < LEVEL_MAX ? level_names[level] : "unknown";
}
