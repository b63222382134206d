/* SPDX-License-Identifier: Apache-2.0 */
#include "placement.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "job/job_names.h"
#include "base/message.h"
#include "job/parse.h"

static const char *const unplaced_names[UNPLACED_MAX] = {
	[PLACED] = "placed",
	[UNPLACED_OFF] = "off",
	[UNPLACED_SHARED] = "same-machine",
	[UNPLACED_FEW] = "few-cores",
	[UNPLACED_FORBIDDEN] = "no-core",
};

static bool is_auto(const char *text) {
	return !text[0] || streq(text, "auto");
}

/* The CPUs of a list, or -1 where none is named. */
static bool named_cpus(const char *text, cpu_set_t *ret) {
	return !is_auto(text) && cpu_list_parse(text, ret) == 0;
}

/* The node that is named; negative: none is. */
static int named_node(const char *text) {
	uint64_t node;

	return !is_auto(text) && parse_u64(text, &node) == 0 ? (int) node : -1;
}

static bool is_within(const cpu_set_t *part, const cpu_set_t *whole) {
	cpu_set_t both;

	CPU_AND(&both, part, whole);
	return CPU_EQUAL(&both, part);
}

static cpu_set_t cores_of(const struct topology *t, const cpu_set_t *cpus) {
	cpu_set_t cores;

	CPU_ZERO(&cores);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t) cpu, cpus))
			CPU_SET((size_t) t->core[cpu], &cores);
	return cores;
}

/* Two pollers on a core, or on its sibling, measure each other. */
static int check_peer_cpus(const struct topology *t, const struct placement_wish *w, const cpu_set_t *cores) {
	cpu_set_t theirs, both;
	int core = 0;

	if (!w->shared || !named_cpus(w->peer_cpu, &theirs))
		return 0;
	theirs = cores_of(t, &theirs);
	CPU_AND(&both, cores, &theirs);
	if (CPU_COUNT(&both) == 0)
		return 0;
	while (!CPU_ISSET((size_t) core, &both))
		core++;
	return failure(-ENODEV, EXIT_HOST, "--cpu %s and the server's --cpu %s share the core of CPU %d; "
		       "name other cores for one end", w->server ? w->peer_cpu : w->cpu,
		       w->server ? w->cpu : w->peer_cpu, core);
}

static int check_cpus(const struct topology *t, const struct placement_wish *w) {
	const char *side = w->server ? "server-" : "";
	char text[CPU_LIST_MAX];
	cpu_set_t cpus, usable, own_cores;
	unsigned cores;

	if (!named_cpus(w->cpu, &cpus))
		return 0;
	if (!is_within(&cpus, &t->cpus))
		return failure(-ENODEV, EXIT_HOST, "--%scpu %s: this host has CPUs %s only; name some of these", side,
			       w->cpu, cpu_list_format(&t->cpus, text));
	/* Isolated ones are in nobody's mask, and are there to be named. */
	CPU_OR(&usable, &t->allowed, &t->isolated);
	if (!is_within(&cpus, &usable))
		return failure(-ENODEV, EXIT_HOST, "--%scpu %s: this process may use CPUs %s only; name some of these, "
			       "or widen its affinity (`taskset -p $$`) or cpuset", side, w->cpu,
			       cpu_list_format(&usable, text));
	own_cores = cores_of(t, &cpus);
	cores = (unsigned) CPU_COUNT(&own_cores);
	if (cores < w->threads)
		return failure(-ENODEV, EXIT_HOST, "--%scpu %s: %u thread%s on %u core%s; name a CPU of a core for "
			       "each, or lower --threads", side, w->cpu, w->threads, w->threads > 1 ? "s" : "", cores,
			       cores > 1 ? "s" : "");
	return check_peer_cpus(t, w, &own_cores);
}

static int check_node(const struct topology *t, const struct placement_wish *w) {
	const char *side = w->server ? "server-" : "";
	int node = named_node(w->numa);
	char text[CPU_LIST_MAX];

	if (node < 0)
		return 0;
	if (CPU_COUNT(&t->nodes) == 0)
		return failure(-ENODEV, EXIT_HOST, "--%snuma %d: this host has no NUMA nodes; leave it out", side,
			       node);
	if (!CPU_ISSET((size_t) node, &t->nodes))
		return failure(-ENODEV, EXIT_HOST, "--%snuma %d: this host has NUMA nodes %s only; name one of these",
			       side, node, cpu_list_format(&t->nodes, text));
	if (!CPU_ISSET((size_t) node, &t->memory))
		return failure(-ENODEV, EXIT_HOST, "--%snuma %d: this NUMA node has no memory; name one of %s", side,
			       node, cpu_list_format(&t->memory, text));
	if (!CPU_ISSET((size_t) node, &t->allowed_memory))
		return failure(-ENODEV, EXIT_HOST, "--%snuma %d: this process may not use its memory; name one of %s, "
			       "or widen the cpuset (cpuset.mems)", side, node,
			       cpu_list_format(&t->allowed_memory, text));
	return 0;
}

int placement_check(const struct topology *t, const struct placement_wish *w) {
	int e = check_cpus(t, w);

	return e < 0 ? e : check_node(t, w);
}

/* What a choice may take from, and what it has taken. */
struct choice {
	const struct topology *t;
	const char *sysfs;
	cpu_set_t from;
	bool named;
	cpu_set_t cores;
	int locks[JOB_THREADS_MAX];     /* kept open as long as the process lives */
	unsigned n_locks;
};

/*
 * Without a list: what this process may use, but not what is kept for others, nor the core of the first processor,
 * where interrupts and timers go that nobody has sent elsewhere.
 */
static void open_choice(const char *sysfs, const struct topology *t, const struct placement_wish *w,
			struct choice *ret) {
	cpu_set_t free_of_isolated;

	*ret = (struct choice) { .t = t, .sysfs = sysfs };
	ret->named = named_cpus(w->cpu, &ret->from);
	if (ret->named)
		return;
	ret->from = t->allowed;
	CPU_AND(&free_of_isolated, &ret->from, &t->isolated);
	CPU_XOR(&free_of_isolated, &free_of_isolated, &ret->from);
	if (CPU_COUNT(&free_of_isolated) > 0)
		ret->from = free_of_isolated;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (t->core[cpu] == t->core[0])
			CPU_CLR((size_t) cpu, &ret->from);
}

/* Of all processes of perch on this host one has the core; the lock ends with the process. */
static bool lock_core(struct choice *c, int core) {
	char path[PATH_MAX];
	int fd;

	(void) snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%d", c->sysfs, core);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return true;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		c->locks[c->n_locks++] = fd;
		return true;
	}
	(void) close_fd(fd);
	return false;
}

static enum unplaced give_back(struct choice *c, enum unplaced why) {
	while (c->n_locks > 0)
		(void) close_fd(c->locks[--c->n_locks]);
	return why;
}

/* -1: none is left. `cores`: those that are taken. */
static int free_cpu(const struct choice *c, const cpu_set_t *cores, int node) {
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t) cpu, &c->from) && (node < 0 || c->t->node[cpu] == node) &&
		    !CPU_ISSET((size_t) c->t->core[cpu], cores))
			return cpu;
	return -1;
}

/* Shares the cores out among all ends that work at the same time: the CPU of this one, or -1 where one has none. */
static int shared_out(const struct choice *c, const struct placement_wish *w) {
	cpu_set_t cores;
	int own = -1;

	CPU_ZERO(&cores);
	for (unsigned i = 0; i < w->n_rails * w->n_slots; i++) {
		int node = named_node(w->numa) >= 0 ? named_node(w->numa) : w->rails[i % w->n_rails];
		int cpu = free_cpu(c, &cores, node);

		if (cpu < 0)
			return -1;
		CPU_SET((size_t) c->t->core[cpu], &cores);
		if (i == w->slot * w->n_rails + w->rail)
			own = cpu;
	}
	return own;
}

/* -1: none is left. */
static int take_cpu(struct choice *c, int node) {
	cpu_set_t passed = c->cores;
	int cpu;

	for (;;) {
		cpu = free_cpu(c, &passed, node);
		if (cpu < 0)
			return -1;
		CPU_SET((size_t) c->t->core[cpu], &passed);
		if (!lock_core(c, c->t->core[cpu]))
			continue;
		CPU_SET((size_t) c->t->core[cpu], &c->cores);
		return cpu;
	}
}

/* A list outranks what is near, and in the end what others have, which is said: who names a core decides. */
static int take_named(struct choice *c, const struct placement_wish *w, int node) {
	int cpu = take_cpu(c, node);

	if (cpu < 0)
		cpu = take_cpu(c, -1);
	if (cpu >= 0)
		return cpu;
	cpu = free_cpu(c, &c->cores, node);
	if (cpu < 0)
		cpu = free_cpu(c, &c->cores, -1);
	if (cpu < 0)
		return -1;
	notice("--%scpu %s: another perch process has the core of CPU %d, which slows both; name other cores",
	       w->server ? "server-" : "", w->cpu, cpu);
	CPU_SET((size_t) c->t->core[cpu], &c->cores);
	return cpu;
}

/* Whether the device's node has a processor that this process may use at all. */
static bool has_cpu(const struct topology *t, int node) {
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t) cpu, &t->allowed) && (node < 0 || t->node[cpu] == node))
			return true;
	return false;
}

static enum unplaced choose_cpus(const char *sysfs, const struct topology *t, const struct placement_wish *w,
				 struct placement *p, cpu_set_t *ret_cores) {
	struct choice c;

	CPU_ZERO(ret_cores);
	if (streq(w->cpu, "off"))
		return UNPLACED_OFF;
	if (is_auto(w->cpu) && w->shared)
		return UNPLACED_SHARED;
	open_choice(sysfs, t, w, &c);
	if (w->n_rails > 0 && !c.named) {
		p->cpus[0] = shared_out(&c, w);
		if (p->cpus[0] < 0)
			return has_cpu(t, w->rails[w->rail]) ? UNPLACED_FEW : UNPLACED_FORBIDDEN;
		if (lock_core(&c, t->core[p->cpus[0]])) {
			CPU_SET((size_t) t->core[p->cpus[0]], ret_cores);
			return PLACED;
		}
	}
	for (unsigned i = 0; i < w->threads; i++) {
		int node = named_node(w->numa) >= 0 ? named_node(w->numa) : w->nodes[i];

		p->cpus[i] = c.named ? take_named(&c, w, node) : take_cpu(&c, node);
		if (p->cpus[i] < 0)
			return give_back(&c, has_cpu(t, node) ? UNPLACED_FEW : UNPLACED_FORBIDDEN);
	}
	*ret_cores = c.cores;
	return PLACED;
}

void placement_choose(const char *sysfs, const struct topology *t, const struct placement_wish *w,
		      struct placement *ret) {
	struct placement p = { .threads = w->threads, .before = t->allowed, .memory = MEMORY_NEAR };
	cpu_set_t cores;

	p.why = choose_cpus(sysfs, t, w, &p, &cores);
	if (named_node(w->numa) >= 0)
		p.memory = named_node(w->numa);
	else if (streq(w->numa, "off") || p.why != PLACED)
		p.memory = MEMORY_ANYWHERE;
	p.aside = t->allowed;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t) t->core[cpu], &cores))
			CPU_CLR((size_t) cpu, &p.aside);
	aside_set(p.why != PLACED ? NULL : CPU_COUNT(&p.aside) > 0 ? &p.aside : &t->allowed);
	*ret = p;
}

/* Near is a preference; a node that is named is an order. */
static int bind_memory(const struct placement *p, int node) {
	cpu_set_t nodes;

	if (p->memory == MEMORY_ANYWHERE || (p->memory == MEMORY_NEAR && node < 0))
		return 0;
	CPU_ZERO(&nodes);
	CPU_SET((size_t) (p->memory >= 0 ? p->memory : node), &nodes);
	if (syscall(SYS_set_mempolicy, p->memory >= 0 ? MPOL_BIND : MPOL_PREFERRED, &nodes,
		    (unsigned long) CPU_SETSIZE) == 0 || p->memory < 0)
		return 0;
	return failure(-errno, EXIT_HOST, "cannot bind memory to NUMA node %d: %s; a container needs CAP_SYS_NICE for "
		       "it, or leave --numa out", p->memory, strerror(errno));
}

int placement_sit(const struct placement *p, unsigned thread, int node) {
	cpu_set_t cpu;

	if (p->why == PLACED) {
		CPU_ZERO(&cpu);
		CPU_SET((size_t) p->cpus[thread], &cpu);
		if (sched_setaffinity(0, sizeof(cpu), &cpu) < 0)
			return failure(-errno, EXIT_HOST, "cannot go to CPU %d: %s; name another with --cpu, or give "
				       "--cpu off", p->cpus[thread], strerror(errno));
	}
	return bind_memory(p, node);
}

struct placed placement_say(const struct placement *p, const struct topology *t, unsigned thread, void *memory) {
	struct placed r = { .why = p->why, .node = -1, .memory_node = -1 };

	CPU_ZERO(&r.cpus);
	if (p->why == PLACED) {
		CPU_SET((size_t) p->cpus[thread], &r.cpus);
		r.node = t->node[p->cpus[thread]];
	}
	if (memory && syscall(SYS_get_mempolicy, &r.memory_node, NULL, 0UL, memory,
			      (unsigned long) (MPOL_F_NODE | MPOL_F_ADDR)) < 0)
		r.memory_node = -1;
	return r;
}

void placed_add(struct placed *to, const struct placed *p) {
	CPU_OR(&to->cpus, &to->cpus, &p->cpus);
	to->node = to->node == p->node ? to->node : -1;
	to->memory_node = to->memory_node == p->memory_node ? to->memory_node : -1;
	for (uint32_t i = 0; p->gpus[0] && i < job_list_length(p->gpus); i++) {
		char address[JOB_NAME_MAX];

		if (job_list_entry(p->gpus, i, address))
			placed_add_gpu(to, address);
	}
}

void placed_add_gpu(struct placed *to, const char *address) {
	size_t used = strlen(to->gpus);

	if (address[0] && !strstr(to->gpus, address) && used + PCI_ADDRESS_MAX + 1 < sizeof(to->gpus))
		(void) snprintf(to->gpus + used, sizeof(to->gpus) - used, "%s%s", used ? "," : "", address);
}

static json_t *number_or_null(int n) {
	return n < 0 ? json_null() : json_integer(n);
}

json_t *placed_to_json(const struct placed *p) {
	char text[CPU_LIST_MAX];

	return json_pack("{s:o, s:o, s:o, s:o, s:o*}", "cpu",
			 p->why == PLACED ? json_string(cpu_list_format(&p->cpus, text)) : json_null(), "node",
			 number_or_null(p->node), "memory_node", number_or_null(p->memory_node), "unplaced",
			 p->why == PLACED ? json_null() : json_string(unplaced_names[p->why]),
			 "gpu", p->gpus[0] ? json_string(p->gpus) : NULL);
}

static bool is_node(const json_t *v) {
	return json_is_null(v) || (json_is_integer(v) && json_integer_value(v) >= 0 &&
				   json_integer_value(v) < CPU_SETSIZE);
}

static int read_gpus(const json_t *list, struct placed *p) {
	char address[JOB_NAME_MAX];

	if (!list)
		return 0;
	if (!json_is_string(list) || json_string_length(list) >= sizeof(p->gpus))
		return -EBADMSG;
	for (uint32_t i = 0; i < job_list_length(json_string_value(list)); i++)
		if (!job_list_entry(json_string_value(list), i, address) || !is_pci_address(address))
			return -EBADMSG;
	return copy_string(p->gpus, sizeof(p->gpus), json_string_value(list));
}

int placed_from_json(const json_t *json, struct placed *ret) {
	const json_t *cpu = json_object_get(json, "cpu"), *node = json_object_get(json, "node"),
		     *memory = json_object_get(json, "memory_node"), *why = json_object_get(json, "unplaced"),
		     *gpus = json_object_get(json, "gpu");
	struct placed p = { .why = PLACED };
	int i;

	CPU_ZERO(&p.cpus);
	if (json_object_size(json) != (gpus ? 5 : 4) || read_gpus(gpus, &p) < 0 || !is_node(node) || !is_node(memory) ||
	    json_is_string(cpu) == json_is_string(why))
		return -EBADMSG;
	if (json_is_string(cpu) && cpu_list_parse(json_string_value(cpu), &p.cpus) < 0)
		return -EBADMSG;
	if (json_is_string(why)) {
		i = name_index(unplaced_names, UNPLACED_MAX, json_string_value(why));
		if (i <= PLACED)
			return -EBADMSG;
		p.why = (enum unplaced) i;
	}
	p.node = json_is_null(node) ? -1 : (int) json_integer_value(node);
	p.memory_node = json_is_null(memory) ? -1 : (int) json_integer_value(memory);
	*ret = p;
	return 0;
}

static const char *remark_on(const struct placed *p) {
	switch (p->why) {
	case UNPLACED_SHARED:
		return "both ends are on one machine";
	case UNPLACED_FEW:
		return "too few free cores near the device, beside the first one";
	case UNPLACED_FORBIDDEN:
		return "no core near the device that this process may use";
	default:
		return NULL;
	}
}

void placed_remark(const struct placed *own, const struct placed *server) {
	const char *ours = remark_on(own), *theirs = remark_on(server);
	const bool both = own->why == server->why;

	if (ours)
		notice("%s pinned to a core: %s", both ? "neither end is" : "this end is not", ours);
	if (theirs && !both)
		notice("the server is not pinned to a core: %s", theirs);
}
