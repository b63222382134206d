/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test doubles of the GPU runtimes: shared libraries with the names and the calls of the makers' own, over host memory.
 * They check that every call comes in its order (initialised before used, allocated before copied,
 * freed before closed) and abort() where it does not. They prove nothing about GPUs, and say so;
 * their GPUs are called sim_..., which makes every result a simulated one.
 *
 * A GPU's memory can be touched by copies alone: its address is mapped without access,
 * so that a host that reaches for it crashes.
 *
 *     PERCH_FAKE_GPU_COUNT=N        GPUs (2)
 *     PERCH_FAKE_GPU_PCI=A,B        their addresses on the PCI bus (FFFF:01:00.0 and on: in a domain that no host has);
 *                                   "-": the runtime does not know
 *     PERCH_FAKE_GPU_MEMORY=BYTES   that all of them have together (1 GiB)
 *     PERCH_FAKE_GPU_COPY_FAIL=N    the N-th copy fails, from 1, and all after it
 *     PERCH_FAKE_GPU_COPY_US=N      each copy takes as long, so that it shows in what is timed (0)
 *     PERCH_FAKE_GPU_DMABUF=0       memory cannot be exported
 *     PERCH_FAKE_GPU_PCIE=1         it can be mapped over PCIe, as CUDA has it since 12.8
 *     PERCH_FAKE_GPU_VISIBLE=1      the host may touch the memory: stands for a network device that reads and writes it
 *     PERCH_FAKE_GPU_LOG=FILE       one line a call, appended
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum fake_result {
	FAKE_OK,
	FAKE_NO_MEMORY,
	FAKE_FAILED,
};

/* The library's name for its own messages: one definition in each. */
extern const char fake_runtime[];

/* Ends the process: what comes next would hide it. */
_Noreturn void fake_violation(const char *what);

/* Whatever follows must be true, in this order. */
#define FAKE_REQUIRE(condition, what) ((condition) ? (void) 0 : fake_violation(what))

void fake_called(const char *name);
void fake_initialise(void);             /* says once what this is */
bool fake_initialised(void);
int fake_count(void);
bool fake_can_export(void);
bool fake_can_map_pcie(void);

/* Where a GPU is on the PCI bus, in capital letters as CUDA has them. False: unknown. */
bool fake_pci(int device, char *ret, size_t size);

enum fake_result fake_alloc(size_t bytes, void **ret);
void fake_free(void *memory);
unsigned fake_live(void);               /* allocations */

/* Made ready for others to read (CUDA's SYNC_MEMOPS); where a runtime has no such thing, at once. */
void fake_make_ready(const void *memory);

bool fake_is_gpu_memory(const void *memory);

/* One side must be memory of the GPU, the other must not. */
enum fake_result fake_copy(void *to, const void *from, size_t bytes, bool into_gpu);

/* A descriptor of the memory behind; the caller closes it. -1: cannot. */
int fake_export(const void *memory, size_t bytes);

void fake_pin(void *memory, size_t bytes);
void fake_unpin(void *memory);
