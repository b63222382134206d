/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_gpu.h. What the three runtimes have in common. */
#include "fake_gpu.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALLOCATIONS_MAX = 16, PINS_MAX = 16 };

static struct allocation {
	uint8_t *address;       /* what the program gets */
	uint8_t *shadow;        /* the same bytes, where copies may work */
	size_t bytes;
	int fd;
	bool ready;
} allocations[ALLOCATIONS_MAX];

static void *pins[PINS_MAX];
static bool initialised;
static uint64_t copies;

static uint64_t setting(const char *name, uint64_t fallback) {
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : fallback;
}

void fake_violation(const char *what) {
	fprintf(stderr, "fake_gpu: %s: the order of calls is violated: %s\n", fake_runtime, what);
	abort();
}

void fake_called(const char *name) {
	const char *file = getenv("PERCH_FAKE_GPU_LOG");
	FILE *f = file ? fopen(file, "ae") : NULL;

	if (!f)
		return;
	fprintf(f, "%s\n", name);
	fclose(f);
}

void fake_initialise(void) {
	if (!initialised)
		fprintf(stderr, "fake_gpu: a test double of the %s runtime, no GPU: "
			"it checks the order of calls, and proves nothing about GPUs\n", fake_runtime);
	initialised = true;
}

bool fake_initialised(void) {
	return initialised;
}

int fake_count(void) {
	return (int) setting("PERCH_FAKE_GPU_COUNT", 2);
}

bool fake_pci(int device, char *ret, size_t size) {
	const char *list = getenv("PERCH_FAKE_GPU_PCI");

	if (!list) {
		(void) snprintf(ret, size, "FFFF:%02X:00.0", device + 1);
		return true;
	}
	for (; device > 0 && *list; device--) {
		list += strcspn(list, ",");
		list += *list == ',';
	}
	(void) snprintf(ret, size, "%.*s", (int) strcspn(list, ","), list);
	return *ret && *ret != '-';
}

bool fake_can_export(void) {
	return setting("PERCH_FAKE_GPU_DMABUF", 1) != 0;
}

bool fake_can_map_pcie(void) {
	return setting("PERCH_FAKE_GPU_PCIE", 0) != 0;
}

unsigned fake_live(void) {
	unsigned n = 0;

	for (size_t i = 0; i < ALLOCATIONS_MAX; i++)
		n += allocations[i].address != NULL;
	return n;
}

/* The allocation that holds these bytes; NULL: they are not all in one. */
static struct allocation *find(const void *memory, size_t bytes) {
	const uint8_t *p = memory;

	for (size_t i = 0; i < ALLOCATIONS_MAX; i++) {
		struct allocation *a = &allocations[i];

		if (a->address && p >= a->address && p < a->address + a->bytes)
			return bytes <= a->bytes - (size_t) (p - a->address) ? a : NULL;
	}
	return NULL;
}

bool fake_is_gpu_memory(const void *memory) {
	return find(memory, 1) != NULL;
}

enum fake_result fake_alloc(size_t bytes, void **ret) {
	int protection = setting("PERCH_FAKE_GPU_VISIBLE", 0) ? PROT_READ | PROT_WRITE : PROT_NONE;
	struct allocation a = { .bytes = bytes };
	uint64_t used = bytes;
	size_t at = 0;

	FAKE_REQUIRE(initialised, "memory was asked for before the runtime was initialised");
	FAKE_REQUIRE(bytes > 0, "no bytes were asked for");
	for (size_t i = 0; i < ALLOCATIONS_MAX; i++)
		used += allocations[i].address ? allocations[i].bytes : 0;
	if (used > setting("PERCH_FAKE_GPU_MEMORY", UINT64_C(1) << 30))
		return FAKE_NO_MEMORY;
	while (at < ALLOCATIONS_MAX && allocations[at].address)
		at++;
	a.fd = memfd_create("fake_gpu", MFD_CLOEXEC);
	if (at == ALLOCATIONS_MAX || a.fd < 0 || ftruncate(a.fd, (off_t) bytes) < 0)
		return FAKE_NO_MEMORY;
	a.shadow = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd, 0);
	a.address = mmap(NULL, bytes, protection, MAP_SHARED, a.fd, 0);
	if (a.shadow == MAP_FAILED || a.address == MAP_FAILED)
		return FAKE_NO_MEMORY;
	/* What another program left there: a program that trusts fresh memory to be empty is seen. */
	memset(a.shadow, 0xa5, bytes);
	allocations[at] = a;
	*ret = a.address;
	return FAKE_OK;
}

void fake_free(void *memory) {
	struct allocation *a = find(memory, 1);

	FAKE_REQUIRE(a && a->address == memory, "freed what was not allocated, or is free already");
	(void) munmap(a->address, a->bytes);
	(void) munmap(a->shadow, a->bytes);
	(void) close(a->fd);
	*a = (struct allocation) { .address = NULL };
}

void fake_make_ready(const void *memory) {
	struct allocation *a = find(memory, 1);

	FAKE_REQUIRE(a, "an attribute was set of what was not allocated");
	a->ready = true;
}

enum fake_result fake_copy(void *to, const void *from, size_t bytes, bool into_gpu) {
	struct allocation *a = find(into_gpu ? to : from, bytes);

	FAKE_REQUIRE(initialised, "a copy before the runtime was initialised");
	FAKE_REQUIRE(a, "a copy goes beyond what was allocated, or never was of a GPU's memory");
	FAKE_REQUIRE(a->ready, "a copy of memory whose operations were not made synchronous");
	FAKE_REQUIRE(!find(into_gpu ? from : to, 1), "both sides of a copy are in a GPU");
	if (++copies >= setting("PERCH_FAKE_GPU_COPY_FAIL", UINT64_MAX))
		return FAKE_FAILED;
	if (setting("PERCH_FAKE_GPU_COPY_US", 0))
		(void) usleep((useconds_t) setting("PERCH_FAKE_GPU_COPY_US", 0));
	if (into_gpu)
		memcpy(a->shadow + ((uint8_t *) to - a->address), from, bytes);
	else
		memcpy(to, a->shadow + ((const uint8_t *) from - a->address), bytes);
	return FAKE_OK;
}

int fake_export(const void *memory, size_t bytes) {
	struct allocation *a = find(memory, bytes);

	FAKE_REQUIRE(a && memory == a->address, "exported what was not allocated");
	FAKE_REQUIRE(a->ready, "exported memory whose operations were not made synchronous");
	return fake_can_export() ? dup(a->fd) : -1;
}

void fake_pin(void *memory, size_t bytes) {
	FAKE_REQUIRE(initialised && bytes > 0, "locked host memory before the runtime was initialised");
	for (size_t i = 0; i < PINS_MAX; i++) {
		FAKE_REQUIRE(pins[i] != memory, "locked the same host memory twice");
		if (!pins[i]) {
			pins[i] = memory;
			return;
		}
	}
	fake_violation("locked too much host memory");
}

void fake_unpin(void *memory) {
	for (size_t i = 0; i < PINS_MAX; i++)
		if (pins[i] == memory) {
			pins[i] = NULL;
			return;
		}
	fake_violation("unlocked host memory that was not locked");
}

/* A program that ends by itself leaves nothing behind. */
static __attribute__((destructor)) void check_end(void) {
	for (size_t i = 0; i < PINS_MAX; i++)
		FAKE_REQUIRE(!pins[i], "the program has ended, and host memory is still locked");
	FAKE_REQUIRE(fake_live() == 0, "the program has ended, and memory was never freed");
}
