/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_kernel.h"

#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/syscall.h>

/* libnuma would say the same, for one dependency more. */
bool nodes_bound(struct nodes *ret) {
	int mode = MPOL_DEFAULT;

	*ret = (struct nodes) { 0 };
	return syscall(SYS_get_mempolicy, &mode, ret->mask, NODES_MAX, NULL, 0UL) == 0 && mode == MPOL_BIND;
}

void nodes_format(const struct nodes *nodes, char ret[NODES_TEXT]) {
	size_t n = 0;

	ret[0] = '\0';
	for (unsigned node = 0; node < NODES_MAX && n < NODES_TEXT; node++)
		if (nodes_have(nodes, node))
			n += (size_t) snprintf(ret + n, NODES_TEXT - n, n ? ", %u" : "NUMA node %u", node);
}

static FILE *open_file(const char *directory, const char *file) {
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", directory, file) >= (int) sizeof(path))
		return NULL;
	return fopen(path, "re");
}

bool kernel_number(const char *directory, const char *file, uint64_t *to) {
	FILE *f = open_file(directory, file);
	unsigned long long n;
	bool ok;

	if (!f)
		return false;
	ok = fscanf(f, "%llu", &n) == 1;
	(void) fclose(f);
	if (ok)
		*to += n;
	return ok;
}

bool kernel_entry(const char *directory, const char *file, const char *key, uint64_t *to) {
	FILE *f = open_file(directory, file);
	char line[128], word[64];
	unsigned long long n;
	bool ok = false;

	while (f && !ok && fgets(line, sizeof(line), f))
		ok = (sscanf(line, "Node %*u %63s %llu", word, &n) == 2 || sscanf(line, "%63s %llu", word, &n) == 2) &&
		     streq(word, key);
	if (f)
		(void) fclose(f);
	if (ok)
		*to += n;
	return ok;
}
