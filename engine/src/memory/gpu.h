/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of GPUs. A maker's runtime is loaded when its memory is first asked for, never linked:
 * the program runs the same on hosts that have none. Each runtime is one `struct gpu_runtime` in a file of its own;
 * what it needs of the maker's headers is declared there.
 */
#pragma once

#include "job/memory_kind.h"

struct gpu;

enum {
	GPU_ADDRESS_TEXT = 32,          /* what a runtime may write there; beyond PCI_ADDRESS_MAX it is no address */
	GPUS_MAX = MEMORY_ORDINAL_MAX + 1,
};

enum gpu_direction {
	GPU_COPY_IN,            /* host to GPU */
	GPU_COPY_OUT,           /* GPU to host */
};

/* How a dmabuf is reached. */
enum gpu_mapping {
	GPU_MAPPING_DEFAULT,    /* as the driver likes */
	GPU_MAPPING_PCIE,       /* over PCIe, although the GPU has another link to the processor, too */
};

/* Every hook says what failed, and why. */
struct gpu_runtime {
	enum memory_type type;
	const char *name;                       /* as in "cuda:0" */
	const char *maker;                      /* for people */
	const char *const *libraries;           /* names to try, the best first; ends with NULL */
	const char *devices;                    /* the device files without which nothing works, for messages */
	const char *remedy;                     /* what to install */

	/* Loads and starts it, and counts its GPUs: at least one. Again: changes nothing. EXIT_HOST. */
	int (*start)(uint32_t *ret_count);

	/* Where a GPU is on the PCI bus, as "0000:3B:00.0"; empty: the runtime does not know. Says nothing. */
	void (*address)(uint32_t ordinal, char ret[GPU_ADDRESS_TEXT]);

	/* Chooses a GPU that start() has counted. EXIT_HOST. */
	int (*open)(uint32_t ordinal, struct gpu **ret);

	/* Whole pages of 2 MiB. -ENOMEM, EXIT_HOST. */
	int (*alloc)(struct gpu *g, size_t length, void **ret);
	void (*free)(struct gpu *g, void *memory);

	/* The bytes are there when it returns. EXIT_INTERNAL. */
	int (*copy)(struct gpu *g, void *to, const void *from, size_t length, enum gpu_direction direction);

	/*
	 * A dmabuf of memory from alloc(), to be closed by the caller, and where in it the memory begins.
	 * -EOPNOTSUPP: not with that mapping; says nothing.
	 */
	int (*export)(struct gpu *g, void *memory, size_t length, enum gpu_mapping mapping, int *ret_fd,
		      uint64_t *ret_offset);

	/*
	 * Locks host memory for faster copies. Where it fails, copies are slower and nothing else.
	 * NULL: the runtime has no such call.
	 */
	int (*pin)(struct gpu *g, void *memory, size_t length);
	void (*unpin)(struct gpu *g, void *memory);

	void (*close)(struct gpu *g);
};

/* Every runtime's own begins with this. */
struct gpu {
	const struct gpu_runtime *runtime;
	uint32_t ordinal;
	uint64_t fabric_device;         /* what fi_mr_attr.device wants to hear */
	char name[64];                  /* of the model, as the runtime says it */
	char address[PCI_ADDRESS_MAX];  /* on the PCI bus; empty: unknown */
};

extern const struct gpu_runtime gpu_cuda, gpu_rocm, gpu_ze;

/* Where the kind's memory shall be: the network devices of this host that work at the same time. */
struct gpu_seat {
	char (*devices)[JOB_NAME_MAX];  /* empty names: unknown ones */
	unsigned own;                   /* which of them is this one's; those before it come first */
	unsigned slots, slot;           /* each has so many commands at a time, and this is one of them; from 0 */
};

/*
 * Which GPU a kind of memory names, by number, for this end. Of several that are equally near, each device, lane and
 * command has the next one; by their numbers. -ENODEV (said, EXIT_HOST): there is no such GPU.
 */
int gpu_find(const struct memory_kind *kind, const struct gpu_seat *seat, struct memory_kind *ret);

/* The same, with a copied host's files at `root`; "": this host's. */
int gpu_find_in(const char *root, const struct memory_kind *kind, const struct gpu_seat *seat, struct memory_kind *ret);

/* A GPU of this host that has a driver, as the kernel shows it. */
struct gpu_found {
	const char *kind;               /* "cuda", "rocm", "ze" */
	char address[PCI_ADDRESS_MAX];
	unsigned nearness;              /* larger is nearer */
};

/* The GPUs of a host, the nearest to a device first. No runtime is asked. Their number. */
size_t gpu_list(const char *root, const char *device, struct gpu_found ret[GPUS_MAX]);

/* Opens the GPU that a kind of memory names by number. Negative: said. */
int gpu_open(const struct memory_kind *kind, struct gpu **ret);

/* Takes NULL; answers NULL. */
struct gpu *gpu_close(struct gpu *g);

/* What a test double calls itself: its results are simulated, and prove nothing about GPUs. */
static inline bool gpu_is_simulated(const struct gpu *g) {
	return g && is_simulated_name(g->name);
}

/*
 * The memory that a GPU's number means, for programs that name the GPU's maker apart: "cuda:N", "rocm:N" or "ze:N".
 * `type` is NVIDIA, AMD or INTEL in any case, or NULL: whose device files are here. -EINVAL: no such maker or number
 * (says nothing). -ENODEV, -ENOTUNIQ: no GPU here, or those of several makers (said, EXIT_HOST).
 */
int gpu_memory_kind(const char *type, const char *number, char ret[JOB_MEMORY_TEXT]);

/* The same with other roots than "/dev" and "/sys", for tests. */
int gpu_memory_kind_in(const char *dev, const char *sys, const char *type, const char *number,
		       char ret[JOB_MEMORY_TEXT]);

/* For the runtimes: what a library must have, or may have. */
struct gpu_symbol {
	const char *name;
	void *place;            /* of the function pointer, which becomes NULL where an optional one is missing */
	bool optional;
};

/*
 * Loads the first of the runtime's libraries that is there, and finds all symbols. Never unloaded.
 * Negative: said, EXIT_HOST.
 */
int gpu_library_load(const struct gpu_runtime *r, const struct gpu_symbol *symbols, size_t n);

/* Where a GPU is, as sysfs spells it; empty: unknown. */
void gpu_address(const struct gpu_runtime *r, uint32_t ordinal, char ret[PCI_ADDRESS_MAX]);

/* The runtime of a GPU's memory. */
const struct gpu_runtime *gpu_runtime_of(enum memory_type type);

/* start() has found none; open() fails. -ENODEV (said, EXIT_HOST). */
int gpu_none(const struct gpu_runtime *r, const char *detail);
int gpu_not_opened(const struct gpu *g, const char *detail);
int gpu_no_memory(const struct gpu *g, size_t length, const char *detail);
int gpu_copy_failed(const struct gpu *g, size_t length, enum gpu_direction direction, const char *detail);
