/* SPDX-License-Identifier: Apache-2.0 */
/* devices: what this host could measure with. */
#include <stdio.h>

#include "backend.h"
#include "client.h"
#include "message.h"

struct listing {
	bool json;
	const char *only;       /* a backend's name; empty: all */
};

static json_t *text_or_null(const char *text) {
	return text[0] ? json_string(text) : json_null();
}

static int print_device(const struct device *d, void *userdata) {
	const struct listing *l = userdata;

	if (l->json) {
		json_t *o = json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "backend", d->backend, "provider", text_or_null(d->provider), "device",
				      d->name, "layer", text_or_null(d->layer), "state", text_or_null(d->state), "address",
				      text_or_null(d->address), "mtu_bytes", d->mtu ? json_integer(d->mtu) : json_null(), "rate_gbit_s",
				      d->rate_gbit_s > 0 ? json_real(d->rate_gbit_s) : json_null());
		_cleanup_free_ char *text = json_dumps(o, JSON_COMPACT);

		json_decref(o);
		if (!text)
			return -ENOMEM;
		(void) printf("%s\n", text);
		return 0;
	}
	(void) printf("%-6s %-16s %-16s %-10s %-6s %7u  %s\n", d->backend, d->provider[0] ? d->provider : "-", d->name,
		      d->layer[0] ? d->layer : "-", d->state[0] ? d->state : "-", d->mtu, d->address);
	return 0;
}

int command_devices(const struct options *o) {
	struct listing l = { .json = o->json, .only = o->job.backend };
	bool known, found = false;
	int e;

	if (l.only[0] && !backend_find(l.only, &known)) {
		(void) failure(-EINVAL, known ? EXIT_HOST : EXIT_USAGE, known ? "backend %s: this perch was built without it"
					: "unknown backend '%s'; `perch --version` lists the backends", l.only);
		return (int) failure_code();
	}
	if (!l.json)
		(void) printf("%-6s %-16s %-16s %-10s %-6s %7s  %s\n", "#", "Provider", "Device", "Layer", "State", "MTU", "Address");
	for (size_t i = 0; backends[i]; i++) {
		if (l.only[0] && !streq(l.only, backends[i]->name))
			continue;
		found = true;
		e = backends[i]->probe(print_device, &l);
		if (e < 0)
			return (int) failure_code();
	}
	return found ? EXIT_MEASURED : EXIT_HOST;
}
