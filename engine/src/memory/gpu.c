/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu.h"

#include <dlfcn.h>

#include "base/message.h"

static const struct gpu_runtime *const runtimes[] = { &gpu_cuda, &gpu_rocm, &gpu_ze };

const struct gpu_runtime *gpu_runtime_of(enum memory_type type) {
	size_t i = 0;

	while (runtimes[i]->type != type)
		i++;
	return runtimes[i];
}

void gpu_address(const struct gpu_runtime *r, uint32_t ordinal, char ret[PCI_ADDRESS_MAX]) {
	char text[GPU_ADDRESS_TEXT];

	r->address(ordinal, text);
	if (!pci_address_read(text, ret))
		ret[0] = '\0';
}

int gpu_open(const struct memory_kind *kind, struct gpu **ret) {
	const struct gpu_runtime *r = gpu_runtime_of(kind->type);
	uint32_t count;
	int e;

	if (kind->near || kind->address[0])
		return failure(-EINVAL, EXIT_INTERNAL, "--memory %s: which GPU it is was not looked up", r->name);
	e = r->start(&count);
	if (e < 0)
		return e;
	if (kind->ordinal >= count)
		return failure(-ENODEV, EXIT_HOST, "--memory %s:%u: the runtime sees %u GPU%s on this host, "
			       "%s:0 to %s:%u; choose one of these", r->name, kind->ordinal, count,
			       count == 1 ? "" : "s", r->name, r->name, count - 1);
	e = r->open(kind->ordinal, ret);
	if (e == 0)
		gpu_address(r, kind->ordinal, (*ret)->address);
	return e;
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

int gpu_none(const struct gpu_runtime *r, const char *detail) {
	return failure(-ENODEV, EXIT_HOST, "--memory %s: the runtime finds no %s GPU on this host%s%s; "
		       "look for %s, the kernel's driver, and your permission on them", r->name, r->maker,
		       detail ? ": " : "", detail ? detail : "", r->devices);
}

int gpu_not_opened(const struct gpu *g, const char *detail) {
	return failure(-ENODEV, EXIT_HOST, "--memory %s:%u: the runtime cannot use this GPU: %s; look for %s, "
		       "and the kernel's log", g->runtime->name, g->ordinal, detail, g->runtime->devices);
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
