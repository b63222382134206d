/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu.h"

#include <dlfcn.h>

#include "base/message.h"

static const struct gpu_runtime *const runtimes[] = { &gpu_cuda, &gpu_rocm, &gpu_ze };

int gpu_open(const struct memory_kind *kind, struct gpu **ret) {
	for (size_t i = 0; i < ELEMENTSOF(runtimes); i++)
		if (runtimes[i]->type == kind->type)
			return runtimes[i]->open(kind->ordinal, ret);
	return failure(-EINVAL, EXIT_INTERNAL, "memory type %d does not belong to a GPU", (int) kind->type);
}

struct gpu *gpu_close(struct gpu *g) {
	if (g)
		g->runtime->close(g);
	return NULL;
}

/* POSIX's way to get a function out of a void pointer: to is the address of the function pointer. */
static bool find(void *handle, const char *name, void *to) {
	void *p = dlsym(handle, name);

	memcpy(to, &p, sizeof(p));
	return p;
}

int gpu_library_load(const struct gpu_runtime *r, const struct gpu_symbol *symbols, size_t n) {
	char why[256] = "";
	void *handle = NULL;

	for (size_t i = 0; r->libraries[i] && !handle; i++) {
		handle = dlopen(r->libraries[i], RTLD_NOW | RTLD_LOCAL);
		/* The first name is the one that a complete installation has. */
		if (!handle && i == 0)
			(void) copy_string(why, sizeof(why), dlerror());
	}
	if (!handle)
		return failure(-ENOENT, EXIT_HOST,
			       "--memory %s: cannot load %s, the runtime of %s GPUs%s%s: %s; it also needs %s", r->name,
			       r->libraries[0], r->maker, why[0] ? ": " : "", why, r->remedy, r->devices);
	for (size_t i = 0; i < n; i++)
		if (!find(handle, symbols[i].name, symbols[i].place) && !symbols[i].optional)
			return failure(-ENOSYS, EXIT_HOST, "--memory %s: the runtime of %s GPUs on this host "
				       "has no %s; it is too old, or another library of that name; %s", r->name,
				       r->maker, symbols[i].name, r->remedy);
	return 0;
}

int gpu_no_device(const struct gpu_runtime *r, uint32_t ordinal, int64_t count, const char *detail) {
	if (count > 0)
		return failure(-ENODEV, EXIT_HOST, "--memory %s:%u: the runtime sees %lld GPU%s on this host, "
			       "%s:0 to %s:%lld; choose one of these", r->name, ordinal, (long long) count,
			       count == 1 ? "" : "s", r->name, r->name, (long long) count - 1);
	return failure(-ENODEV, EXIT_HOST, "--memory %s:%u: the runtime finds no %s GPU on this host%s%s; "
		       "look for %s, the kernel's driver, and your permission on them", r->name, ordinal, r->maker,
		       detail && detail[0] ? ": " : "", detail ? detail : "", r->devices);
}

int gpu_no_memory(const struct gpu *g, size_t length, const char *detail) {
	return failure(-ENOMEM, EXIT_HOST, "%s:%u (%s): cannot get %zu MiB of its memory: %s; "
		       "lower --size or --outstanding, or end what else uses it", g->runtime->name, g->ordinal, g->name,
		       length >> 20, detail);
}

int gpu_copy_failed(const struct gpu *g, size_t length, enum gpu_direction direction, const char *detail) {
	return failure(-EIO, EXIT_INTERNAL, "%s:%u (%s): copying %zu bytes %s its memory failed: %s; "
		       "see the kernel's log for what became of the GPU", g->runtime->name, g->ordinal, g->name, length,
		       direction == GPU_COPY_IN ? "into" : "out of", detail);
}
