/* SPDX-License-Identifier: Apache-2.0 */
/* devices: what this host could measure with. */
#include <stdio.h>

#include "backend.h"
#include "client.h"
#include "message.h"

static json_t *text_or_null(const char *text) {
	return text[0] ? json_string(text) : json_null();
}

static int print_device(const struct device *d, void *userdata) {
	const struct options *options = userdata;

	if (options->json) {
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
	struct options options = *o; /* a callback's data is not const */
	int e;

	if (!o->json)
		(void) printf("%-6s %-16s %-16s %-10s %-6s %7s  %s\n", "#", "Provider", "Device", "Layer", "State", "MTU", "Address");
	for (size_t i = 0; backends[i]; i++) {
		e = backends[i]->probe(print_device, &options);
		if (e < 0)
			return (int) failure_code();
	}
	return EXIT_MEASURED;
}
