/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include "backends/registry.h"
#include "host/netdev.h"

static void read_host(struct topology *ret) {
	cpu_set_t cpus, nodes;

	topology_allowed(&cpus, &nodes);
	topology_read("/sys", &cpus, &nodes, ret);
}

/* Where none is named: the one that the backend will take, as far as that is known before it is opened. */
static int device_of(const struct open_arguments *a, const char *device, char ret[JOB_NAME_MAX]) {
	const struct backend *b = backend_find(a->job->backend);
	struct netdev n;

	if (!device[0] && b->near)
		return b->near(a, ret);
	if (!device[0])
		device = netdev_of_address(a->local, &n) == 0 ? n.name : "";
	(void) copy_string(ret, JOB_NAME_MAX, device);
	return 0;
}

/* `slot` is validated. Commands that share one device need not name it. */
static int read_rails(const struct open_arguments *a, const char *list, const char *slot, const char *own,
		      struct placement_wish *w, struct place *p) {
	char name[JOB_NAME_MAX];
	int e = 0;

	(void) job_slot(slot, &w->slot, &w->n_slots);
	w->slot--;
	p->slots = w->n_slots;
	p->slot = w->slot;
	if (!list[0] && w->n_slots > 1) {
		w->n_rails = 1;
		w->rails[0] = w->nodes[0];
		return 0;
	}
	w->n_rails = list[0] ? job_list_length(list) : 0;
	for (uint32_t i = w->n_rails; e == 0 && i-- > 0;) {
		(void) job_list_entry(list, i, name); /* validated */
		if (streq(name, own))
			w->rail = i;
		e = device_of(a, name, p->devices[i]);
		w->rails[i] = device_node("/sys", p->devices[i]);
	}
	p->own = w->rail;
	return e;
}

int place_open(const struct open_arguments *a, struct place *ret) {
	const struct job *j = a->job;
	const bool server = a->role == ROLE_SERVER;
	struct placement_wish w = {
		.cpu = server ? j->server_cpu : j->cpu,
		.numa = server ? j->server_numa : j->numa,
		.server = server,
		.shared = a->same_machine,
		.peer_cpu = server ? j->cpu : j->server_cpu,
		.threads = job_has_lanes(j) ? j->threads : 1,
	};
	const uint32_t lanes = job_has_lanes(j) ? job_lanes(j) : 1;
	int e = 0;

	*ret = (struct place) { 0 };
	read_host(&ret->topology);
	for (uint32_t i = 0; e == 0 && i < lanes; i++) {
		struct job lane = *j;

		if (job_has_lanes(j))
			job_for_lane(j, i, &lane);
		e = device_of(a, server ? lane.server_device : lane.device, ret->devices[i]);
		ret->nodes[i] = device_node("/sys", ret->devices[i]);
		w.nodes[i] = ret->nodes[i]; /* a thread's first lane has its number */
	}
	if (e == 0)
		e = read_rails(a, server ? j->server_rails : j->rails, server ? j->server_slot : j->slot,
			       server ? j->server_device : j->device, &w, ret);
	if (e == 0)
		e = placement_check(&ret->topology, &w);
	if (e == 0)
		placement_choose("/sys", &ret->topology, &w, &ret->placement);
	return e;
}

int place_check(const struct job *own) {
	const struct placement_wish w = { .cpu = own->cpu, .numa = own->numa, .threads = 1 };
	struct topology t;

	read_host(&t);
	return placement_check(&t, &w);
}

int place_sit(const struct place *p, unsigned thread, unsigned lane) {
	return placement_sit(&p->placement, thread, p->nodes[lane]);
}

int place_memory(struct place *p, unsigned lane, struct memory_kind *kinds, size_t n) {
	const struct gpu_seat seat = { .devices = p->devices, .own = p->own + lane, .slots = p->slots,
				       .slot = p->slot };
	int e = 0;

	for (size_t i = 0; e == 0 && i < n; i++)
		e = gpu_find(&kinds[i], &seat, &kinds[i]);
	return e;
}

struct placed place_say(const struct place *p, unsigned thread, const struct arena *arena) {
	const struct region *r = &arena->regions[0];
	struct placed said = placement_say(&p->placement, &p->topology, thread, r->gpu ? NULL : r->base);

	for (unsigned i = 0; i < arena->n_regions; i++)
		if (arena->regions[i].gpu)
			placed_add_gpu(&said, arena->regions[i].gpu->address);
	return said;
}
