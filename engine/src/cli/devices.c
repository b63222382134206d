/* SPDX-License-Identifier: Apache-2.0 */
/* devices: what this host could measure with. */
#include <stdio.h>

#include "backends/registry.h"
#include "client.h"
#include "host/device_facts.h"
#include "memory/gpu.h"
#include "base/message.h"
#include "host/topology.h"

static json_t *text_or_null(const char *text) {
	return text[0] ? json_string(text) : json_null();
}

static json_t *gids_json(const struct device_rdma *r) {
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_gids; i++)
		(void) json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:o}", "index", r->gids[i].index, "gid",
							     r->gids[i].gid, "type", r->gids[i].type, "netdev",
							     text_or_null(r->gids[i].netdev)));
	return list;
}

static json_t *rdma_json(const struct device_rdma *r) {
	const struct device_capabilities *c = r->can;
	json_t *can = c ? json_pack("{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:I}", "rc", c->rc, "uc", c->uc, "ud",
				    c->ud, "atomics", c->atomics, "srq", c->srq, "dmabuf", c->dmabuf, "peer_memory",
				    c->peer_memory, "inline_bytes", (json_int_t) c->inline_bytes)
			: json_null();

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "port",
			 r->port ? json_integer((json_int_t) r->port) : json_null(), "lid",
			 r->lid ? json_integer(r->lid) : json_null(), "firmware", text_or_null(r->firmware), "driver",
			 text_or_null(r->driver), "gids", gids_json(r), "capabilities", can);
}

/* As --memory takes them, the nearest first. */
static json_t *gpus_json(const char *device) {
	struct gpu_found found[GPUS_MAX];
	const size_t n = gpu_list("", device, found);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		(void) json_array_append_new(list, json_sprintf("%s:%s", found[i].kind, found[i].address));
	return list;
}

static json_t *place_json(const struct device *d) {
	char pci[PCI_ADDRESS_MAX], netdev[IF_NAMESIZE];
	int node = device_node("/sys", d->name);

	device_pci_address("", d->name, pci);
	(void) snprintf(netdev, sizeof(netdev), "%s", d->netdev);
	if (!netdev[0])
		device_netdev("", d->name, netdev);
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "gpus", gpus_json(d->name), "netdev", text_or_null(netdev),
			 "pci_address", text_or_null(pci), "numa_node", node >= 0 ? json_integer(node) : json_null(),
			 "default_route", netdev[0] ? json_boolean(netdev_has_default_route("", netdev)) : json_null());
}

static int print_json(const struct device *d) {
	json_t *o = json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "backend", d->backend, "provider",
			      text_or_null(d->provider), "device", d->name, "layer", text_or_null(d->layer), "state",
			      text_or_null(d->state), "address", text_or_null(d->address), "mtu_bytes",
			      d->mtu ? json_integer(d->mtu) : json_null(), "rate_gbit_s",
			      d->rate_gbit_s > 0 ? json_real(d->rate_gbit_s) : json_null(), "remedy",
			      text_or_null(d->remedy ? d->remedy : ""));
	json_t *place = place_json(d), *rdma = d->rdma ? rdma_json(d->rdma) : json_object();
	_cleanup_free_ char *text = NULL;

	if (o && place && rdma && json_object_update(o, place) == 0 && json_object_update(o, rdma) == 0)
		text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(rdma);
	json_decref(place);
	json_decref(o);
	if (!text)
		return failure(-ENOMEM, EXIT_INTERNAL, "out of memory");
	(void) printf("%s\n", text);
	return 0;
}

/* What does not fit into the columns stands in lines of its own below the device. */
static void print_rdma(const struct device *d) {
	const struct device_rdma *r = d->rdma;
	const struct device_capabilities *c = r->can;
	struct gpu_found gpus[GPUS_MAX];
	int node = device_node("/sys", d->name);

	if (r->port)
		(void) printf("#      port %u, driver %s, firmware %s, NUMA node ", r->port,
			      r->driver[0] ? r->driver : "unknown", r->firmware[0] ? r->firmware : "unknown");
	else
		(void) printf("#      driver %s, NUMA node ", r->driver[0] ? r->driver : "unknown");
	if (node >= 0)
		(void) printf("%d\n", node);
	else
		(void) printf("unknown\n");
	if (c)
		(void) printf("#      can do%s%s%s%s%s%s, inline up to %u B\n", c->rc ? " RC" : "", c->uc ? " UC" : "",
			      c->ud ? " UD" : "", c->atomics ? " atomics" : "", c->srq ? " SRQ" : "",
			      c->dmabuf ? " dmabuf" : "", c->inline_bytes);
	if (gpu_list("", d->name, gpus) > 0)
		(void) printf("#      nearest GPU %s:%s\n", gpus[0].kind, gpus[0].address);
	for (size_t i = 0; i < r->n_gids; i++)
		(void) printf("#      GID %d: %s, %s%s%s\n", r->gids[i].index, r->gids[i].gid, r->gids[i].type,
			      r->gids[i].netdev[0] ? ", " : "", r->gids[i].netdev);
}

static int print_device(const struct device *d, void *userdata) {
	const struct options *options = userdata;
	char rate[16] = "-";

	if (options->json)
		return print_json(d);
	if (d->rate_gbit_s > 0)
		(void) snprintf(rate, sizeof(rate), "%g", d->rate_gbit_s);
	(void) printf("%-6s %-16s %-16s %-10s %-7s %7u %8s  %s\n", d->backend, d->provider[0] ? d->provider : "-",
		      d->name, d->layer[0] ? d->layer : "-", d->state[0] ? d->state : "-", d->mtu, rate, d->address);
	if (d->rdma)
		print_rdma(d);
	if (d->remedy)
		(void) printf("#      cannot be used as it is: %s\n", d->remedy);
	return 0;
}

int command_devices(const struct options *o) {
	struct options options = *o; /* a callback's data is not const */
	int e;

	if (!o->json)
		(void) printf("%-6s %-16s %-16s %-10s %-7s %7s %8s  %s\n", "#", "Provider", "Device", "Layer", "State",
			      "MTU", "Gb/s", "Address");
	for (size_t i = 0; backends[i]; i++) {
		e = backends[i]->probe(print_device, &options);
		if (e < 0)
			return (int) failure_code();
	}
	return EXIT_MEASURED;
}
