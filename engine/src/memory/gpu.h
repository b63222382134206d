/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of GPUs. A maker's runtime is loaded when its memory is first asked for, never linked:
 * the program runs the same on hosts that have none. Each runtime is one `struct gpu_runtime` in a file of its own;
 * what it needs of the maker's headers is declared there.
 */
#pragma once

#include "job/memory_kind.h"

struct gpu;

enum gpu_direction {
	GPU_COPY_IN,            /* host to GPU */
	GPU_COPY_OUT,           /* GPU to host */
};

/* Every hook says what failed, and why. */
struct gpu_runtime {
	enum memory_type type;
	const char *name;                       /* as in "cuda:0" */
	const char *maker;                      /* for people */
	const char *const *libraries;           /* names to try, the best first; ends with NULL */
	const char *devices;                    /* the device files without which nothing works, for messages */
	const char *remedy;                     /* what to install */

	/* Loads and starts it, and chooses a GPU. EXIT_HOST. */
	int (*open)(uint32_t ordinal, struct gpu **ret);

	/* Whole pages of 2 MiB. -ENOMEM, EXIT_HOST. */
	int (*alloc)(struct gpu *g, size_t length, void **ret);
	void (*free)(struct gpu *g, void *memory);

	/* The bytes are there when it returns. EXIT_INTERNAL. */
	int (*copy)(struct gpu *g, void *to, const void *from, size_t length, enum gpu_direction direction);

	/*
	 * A dmabuf of memory from alloc(), to be closed by the caller, and where in it the memory begins.
	 * -EOPNOTSUPP: says nothing.
	 */
	int (*export)(struct gpu *g, void *memory, size_t length, int *ret_fd, uint64_t *ret_offset);

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
};

extern const struct gpu_runtime gpu_cuda, gpu_rocm, gpu_ze;

/* Opens the GPU that a kind of memory names. Negative: said. */
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
int gpu_memory_kind(const char *type, const char *number, char ret[JOB_NAME_MAX]);

/* The same with other roots than "/dev" and "/sys", for tests. */
int gpu_memory_kind_in(const char *dev, const char *sys, const char *type, const char *number, char ret[JOB_NAME_MAX]);

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

/* An ordinal that there is none of, as open() finds it out. -ENODEV (said, EXIT_HOST). */
int gpu_no_device(const struct gpu_runtime *r, uint32_t ordinal, int64_t count, const char *detail);
int gpu_no_memory(const struct gpu *g, size_t length, const char *detail);
int gpu_copy_failed(const struct gpu *g, size_t length, enum gpu_direction direction, const char *detail);
