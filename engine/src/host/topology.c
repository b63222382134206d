/* SPDX-License-Identifier: Apache-2.0 */
#include "topology.h"

#include <limits.h>
#include <linux/mempolicy.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>


static _printf_(2, 3) bool read_line(char ret[4096], const char *format, ...) {
	char path[PATH_MAX];
	va_list ap;
	FILE *f;
	bool ok;

	va_start(ap, format);
	(void) vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(ret, 4096, f);
	(void) fclose(f);
	if (ok)
		ret[strcspn(ret, "\n")] = '\0';
	return ok;
}

/* Of a file that is not there, or empty: none. */
static void read_list(cpu_set_t *ret, const char *sysfs, const char *name) {
	char text[4096];

	if (!read_line(text, "%s/devices/system/%s", sysfs, name) || cpu_list_parse(text, ret) < 0)
		CPU_ZERO(ret);
}

static int core_of(const char *sysfs, int cpu) {
	char text[4096];
	cpu_set_t siblings;

	if (!read_line(text, "%s/devices/system/cpu/cpu%d/topology/thread_siblings_list", sysfs, cpu) ||
	    cpu_list_parse(text, &siblings) < 0)
		return cpu;
	for (int i = 0; i < cpu; i++)
		if (CPU_ISSET((size_t) i, &siblings))
			return i;
	return cpu;
}

void topology_allowed(cpu_set_t *ret_cpus, cpu_set_t *ret_nodes) {
	if (sched_getaffinity(0, sizeof(*ret_cpus), ret_cpus) < 0)
		CPU_ZERO(ret_cpus);
	CPU_ZERO(ret_nodes);
	/* Where it is forbidden (a container) no policy can be set either. */
	(void) syscall(SYS_get_mempolicy, NULL, ret_nodes, (unsigned long) CPU_SETSIZE, NULL,
		       (unsigned long) MPOL_F_MEMS_ALLOWED);
}

void topology_read(const char *sysfs, const cpu_set_t *cpus, const cpu_set_t *nodes, struct topology *ret) {
	read_list(&ret->cpus, sysfs, "cpu/online");
	if (CPU_COUNT(&ret->cpus) == 0)
		ret->cpus = *cpus;
	read_list(&ret->isolated, sysfs, "cpu/isolated");
	read_list(&ret->nodes, sysfs, "node/online");
	read_list(&ret->memory, sysfs, "node/has_memory");
	CPU_AND(&ret->allowed, &ret->cpus, cpus);
	CPU_AND(&ret->allowed_memory, &ret->memory, nodes);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		ret->node[cpu] = -1;
		ret->core[cpu] = CPU_ISSET((size_t) cpu, &ret->cpus) ? core_of(sysfs, cpu) : cpu;
	}
	for (int node = 0; node < CPU_SETSIZE; node++) {
		char name[64];
		cpu_set_t of;

		if (!CPU_ISSET((size_t) node, &ret->nodes))
			continue;
		(void) snprintf(name, sizeof(name), "node/node%d/cpulist", node);
		read_list(&of, sysfs, name);
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET((size_t) cpu, &of))
				ret->node[cpu] = node;
	}
}

int device_node(const char *sysfs, const char *device) {
	static const char *const classes[] = { "infiniband", "net", "cxi" };
	char text[4096];

	if (!device[0] || strchr(device, '/'))
		return -1;
	for (size_t i = 0; i < ELEMENTSOF(classes); i++)
		if (read_line(text, "%s/class/%s/%s/device/numa_node", sysfs, classes[i], device))
			return (int) strtol(text, NULL, 10);
	if (read_line(text, "%s/class/infiniband/%s/parent", sysfs, device) && strlen(text) < IF_NAMESIZE &&
	    !strchr(text, '/')) {
		char parent[IF_NAMESIZE];

		(void) copy_string(parent, sizeof(parent), text);
		if (read_line(text, "%s/class/net/%s/device/numa_node", sysfs, parent))
			return (int) strtol(text, NULL, 10);
	}
	return -1;
}
