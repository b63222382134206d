/* SPDX-License-Identifier: Apache-2.0 */
#include "backend.h"

#include "message.h"

/* One line a backend; the Makefile defines HAVE_* for those whose libraries were found. */
extern const struct backend backend_tcp, backend_verbs, backend_ofi, backend_cxi, backend_null;

const struct backend *const backends[] = {
	&backend_tcp,
#ifdef HAVE_VERBS
	&backend_verbs,
#endif
#ifdef HAVE_OFI
	&backend_ofi,
	&backend_cxi,
#endif
	&backend_null,
	NULL,
};

/* Names that Perch has a backend for, so that "built without" can be told from "unknown". */
static const char *const known_names[] = { "tcp", "verbs", "ofi", "cxi", "null" };

static const char *const level_names[LEVEL_MAX] = {
	[LEVEL_NONE] = "none",
	[LEVEL_INJECT] = "inject",
	[LEVEL_TRANSMIT] = "transmit",
	[LEVEL_DELIVERY] = "delivery",
};

const struct backend *backend_find(const char *name, bool *ret_known) {
	*ret_known = false;
	for (size_t i = 0; i < ELEMENTSOF(known_names); i++)
		*ret_known |= streq(known_names[i], name);
	for (size_t i = 0; backends[i]; i++)
		if (streq(backends[i]->name, name))
			return backends[i];
	return NULL;
}

int backend_check(const struct backend *b) {
	if (b->version != BACKEND_VERSION || !b->name || !b->summary || !b->ops)
		return failure(-EINVAL, EXIT_INTERNAL, "backend %s: made for another version of the interface", b->name ? b->name : "?");
	if (!b->probe || !b->open || !b->local_address || !b->connect || !b->post || !b->post_receive || !b->poll || !b->close)
		return failure(-EINVAL, EXIT_INTERNAL, "backend %s: a required hook is missing", b->name);
	return 0;
}

const char *level_name(int level) {
	return level >= 0 && level < LEVEL_MAX ? level_names[level] : "unknown";
}
