/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu.h"

#include <stdio.h>
#include <sys/resource.h>

static double seconds(struct timeval t) {
	return (double) t.tv_sec + (double) t.tv_usec / 1e6;
}

/*
 * First line of /proc/stat: user nice system idle iowait irq softirq steal;
 * all but idle, iowait and steal are this host's work.
 */
static double host_busy(void) {
	unsigned long long user, nice, system, idle, iowait, irq, softirq;
	FILE *f = fopen("/proc/stat", "re");
	double r = -1;

	if (!f)
		return -1;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq,
		   &softirq) == 7)
		r = (double) (user + nice + system + irq + softirq) / (double) sysconf(_SC_CLK_TCK);
	(void) fclose(f);
	return r;
}

void cpu_now(struct cpu_time *ret) {
	struct rusage u;

	ret->process_s = getrusage(RUSAGE_SELF, &u) == 0 ? seconds(u.ru_utime) + seconds(u.ru_stime) : -1;
	ret->host_s = host_busy();
}

struct cpu_time cpu_since(const struct cpu_time *earlier) {
	struct cpu_time now;

	cpu_now(&now);
	now.process_s = now.process_s < 0 || earlier->process_s < 0 ? -1 : now.process_s - earlier->process_s;
	now.host_s = now.host_s < 0 || earlier->host_s < 0 ? -1 : now.host_s - earlier->host_s;
	return now;
}
