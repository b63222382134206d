/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_list.h"

#include <ctype.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/syscall.h>

static int parse_number(const char **text, unsigned *ret) {
	unsigned n = 0;

	if (!isdigit((unsigned char) **text))
		return -EINVAL;
	for (; isdigit((unsigned char) **text); (*text)++)
		n = MIN(n * 10 + (unsigned) (**text - '0'), (unsigned) CPU_SETSIZE);
	*ret = n;
	return n < CPU_SETSIZE ? 0 : -ERANGE;
}

int cpu_list_parse(const char *text, cpu_set_t *ret) {
	cpu_set_t set;
	unsigned first, last;
	int r;

	CPU_ZERO(&set);
	for (;;) {
		r = parse_number(&text, &first);
		last = first;
		if (r == 0 && *text == '-') {
			text++;
			r = parse_number(&text, &last);
		}
		if (r < 0)
			return r;
		if (last < first)
			return -EINVAL;
		for (unsigned n = first; n <= last; n++)
			CPU_SET(n, &set);
		if (*text == '\0')
			break;
		if (*text++ != ',')
			return -EINVAL;
	}
	*ret = set;
	return 0;
}

const char *cpu_list_format(const cpu_set_t *set, char ret[CPU_LIST_MAX]) {
	size_t n = 0;

	ret[0] = '\0';
	for (int first = 0; first < CPU_SETSIZE && n < CPU_LIST_MAX; first++) {
		int last = first;

		if (!CPU_ISSET((size_t) first, set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET((size_t) last + 1, set))
			last++;
		n += (size_t) snprintf(ret + n, CPU_LIST_MAX - n, "%s%d", n ? "," : "", first);
		if (last > first && n < CPU_LIST_MAX)
			n += (size_t) snprintf(ret + n, CPU_LIST_MAX - n, "%c%d", last > first + 1 ? '-' : ',', last);
		first = last;
	}
	return ret;
}

static struct {
	bool known;
	cpu_set_t cpus;
} aside;

void aside_set(const cpu_set_t *cpus) {
	aside.known = cpus;
	if (cpus)
		aside.cpus = *cpus;
}

void stand_aside(void) {
	if (!aside.known)
		return;
	(void) sched_setaffinity(0, sizeof(aside.cpus), &aside.cpus);
	(void) syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL);
}
