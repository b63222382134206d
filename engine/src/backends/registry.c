/* SPDX-License-Identifier: Apache-2.0 */
#include "registry.h"

#include "base/message.h"

/* One line a backend; the Makefile defines HAVE_* for those whose libraries were found. */
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

const struct backend *backend_find(const char *name) {
	for (size_t i = 0; backends[i]; i++)
		if (streq(backends[i]->facts->name, name))
			return backends[i];
	return NULL;
}

int backend_require(const struct job *job) {
	return backend_find(job->backend) ? 0 :
	       failure(-EOPNOTSUPP, EXIT_HOST,
		       "backend %s: this perch was built without it; `perch --version` lists what it has",
		       job->backend);
}
