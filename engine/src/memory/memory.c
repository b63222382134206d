/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <linux/mman.h> /* MAP_HUGE_SHIFT */
#include <stdio.h>
#include <sys/mman.h>

#include "memory_huge.h"
#include "memory_room.h"
#include "base/message.h"

/*
 * What shared slots may take in all: half of a small level 2 cache (256 KiB on the oldest supported server cores),
 * so that a deep queue measures the path and not memory. Of more queue pairs each may take as much as one of
 * perftest's: it cycles through a page, or has one message (its cycle_buffer, and BUFF_SIZE).
 */
#define SHARED_BYTES (UINT64_C(128) * 1024)
#define QUEUE_BYTES UINT64_C(4096)

/*
 * GPUs map their memory in pages of 2 MiB for others (GPUDirect RDMA: 64 KiB);
 * whole ones never share with another program's.
 */
#define GPU_PAGE_BYTES (UINT64_C(2) << 20)

/*
 * Fresh memory of a GPU may hold what another program left there, and would carry it over the network:
 * this much is cleared at a time.
 */
#define CLEAR_BYTES (UINT64_C(2) << 20)

/*
 * Halves are multiples of the largest page that an RDMA host has (CONFIG_ARM64_64K_PAGES, CONFIG_PPC_64K_PAGES), not of
 * this host's: both ends must cut them alike, and each half begins with a page.
 */
#define HALF_UNIT (UINT64_C(64) << 10)

static uint64_t round_up(uint64_t n, uint64_t to) {
	return (n + to - 1) / to * to;
}

static void touch_pages(uint8_t *p, uint64_t length) {
	const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);

	for (uint64_t at = 0; at < length; at += page)
		((volatile uint8_t *) p)[at] = 0;
}

/* Huge pages come from a pool that the administrator fills; the kernel takes them whole at once or fails (mmap(2)). */
static int map_pages(uint64_t length, const struct memory_kind *kind, void **ret) {
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, e;
	void *p;

	e = kind->huge ? 0 : room_check("", length);
	if (e < 0)
		return e;
	if (!kind->small)
		flags |= MAP_POPULATE;
	if (kind->huge)
		flags |= MAP_HUGETLB | __builtin_ctzll(kind->huge) << MAP_HUGE_SHIFT;
	p = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (p == MAP_FAILED && kind->huge)
		return huge_failure("/sys", kind->huge, length, errno);
	if (p == MAP_FAILED)
		return failure(-ENOMEM, EXIT_HOST, "cannot get %llu MiB for the buffers: %s; "
			       "lower --footprint, --size, --outstanding, --batch, --stride or --threads",
			       (unsigned long long) (length >> 20), strerror(errno));
	if (kind->small) {
		/* Before a page is there. It fails on kernels without transparent huge pages, which have no others. */
		(void) madvise(p, length, MADV_NOHUGEPAGE);
		touch_pages(p, length);
	}
	*ret = p;
	return 0;
}

static int map_host(uint64_t length, const struct memory_kind *kind, struct region *ret) {
	void *p = NULL;
	int e;

	e = room_take(length);
	if (e < 0)
		return e;
	e = map_pages(length, kind, &p);
	if (e < 0) {
		room_give(length);
		return e;
	}
	*ret = (struct region) { .base = p, .length = length };
	return 0;
}

static int clear_gpu(const struct region *r) {
	_cleanup_free_ uint8_t *zeros = calloc(1, MIN(r->length, CLEAR_BYTES));
	int e = zeros ? 0 : failure(-ENOMEM, EXIT_HOST, "no memory to clear a GPU's with");

	for (uint64_t at = 0; e == 0 && at < r->length; at += CLEAR_BYTES)
		e = r->gpu->runtime->copy(r->gpu, r->base + at, zeros, MIN(r->length - at, CLEAR_BYTES), GPU_COPY_IN);
	return e;
}

static int map_gpu(const struct memory_kind *kind, uint64_t length, struct region *ret) {
	struct region r = { .length = length };
	void *p;
	int e;

	e = room_take(length);
	if (e < 0)
		return e;
	e = gpu_open(kind, &r.gpu);
	if (e == 0)
		e = r.gpu->runtime->alloc(r.gpu, length, &p);
	if (e < 0) {
		(void) gpu_close(r.gpu);
		room_give(length);
		return e;
	}
	r.base = p;
	*ret = r; /* from here on arena_close() has it */
	return clear_gpu(ret);
}

static int map_region(const struct memory_kind *kind, uint64_t length, struct region *ret) {
	uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);

	if (memory_is_gpu(kind->type))
		return map_gpu(kind, round_up(length, GPU_PAGE_BYTES), ret);
	return map_host(round_up(length, kind->huge ? kind->huge : page), kind, ret);
}

static void unmap_region(struct region *r) {
	if (r->base && !r->borrowed && r->gpu)
		r->gpu->runtime->free(r->gpu, r->base);
	else if (r->base && !r->borrowed)
		(void) munmap(r->base, r->length);
	if (!r->borrowed) {
		r->gpu = gpu_close(r->gpu);
		room_give(r->length);
	}
	*r = (struct region) { .base = NULL };
}

/* Locked where the runtime can: else each copy goes through a buffer of the runtime's own. */
static int open_view(struct region *view, const struct region *of, size_t half) {
	static const struct memory_kind host = { .type = MEMORY_HOST };
	int e;

	e = map_host(half, &host, view);
	if (e < 0)
		return e;
	if (of->gpu->runtime->pin && of->gpu->runtime->pin(of->gpu, view->base, view->length) == 0)
		view->gpu = of->gpu;
	return 0;
}

static void close_view(struct region *view) {
	if (view->gpu)
		view->gpu->runtime->unpin(view->gpu, view->base);
	if (view->base)
		(void) munmap(view->base, view->length);
	room_give(view->length);
	*view = (struct region) { .base = NULL };
}

static int open_views(struct arena *a) {
	const struct region *of[2] = { arena_tx_region(a), arena_rx_region(a) };
	uint8_t **places[2] = { &a->view_tx, &a->view_rx };
	int e;

	for (size_t i = 0; i < ELEMENTSOF(of); i++) {
		if (!of[i]->gpu) {
			*places[i] = i == 0 ? a->tx : a->rx;
			continue;
		}
		if (a->distinct < a->slots)
			continue; /* shared slots are never verified */
		e = open_view(&a->views[i], of[i], a->length / 2);
		if (e < 0)
			return e;
		*places[i] = a->views[i].base;
	}
	return 0;
}

/* Both halves in one piece where that is possible: one registration then serves both. */
static int open_regions(struct arena *a, const struct memory_kind kinds[2]) {
	uint64_t half = a->length / 2;
	int e;

	a->n_regions = memory_kind_equal(&kinds[0], &kinds[1]) ? 1 : 2;
	e = map_region(&kinds[0], a->n_regions == 1 ? a->length : half, &a->regions[0]);
	if (e == 0 && a->n_regions == 2)
		e = map_region(&kinds[1], half, &a->regions[1]);
	if (e < 0)
		return e;
	a->tx = a->regions[0].base;
	a->rx = a->n_regions == 1 ? a->tx + half : a->regions[1].base;
	return 0;
}

/* The halves are cut; *ret is set only when all is there. */
static int map_halves(struct arena a, const struct memory_kind kinds[2], struct arena *ret) {
	static const struct memory_kind host[2];        /* MEMORY_HOST is 0 */
	int e;

	e = open_regions(&a, kinds ? kinds : host);
	if (e == 0)
		e = open_views(&a);
	if (e < 0) {
		arena_close(&a);
		return e;
	}
	*ret = a;
	return 0;
}

static const struct queues one_queue = { .n = 1, .run = 1 };

/* A table, since which queue pair a slot belongs to takes divisions. */
static int offsets_open(struct arena *a, const struct queues *q, const struct places *p) {
	if (q->n == 1)
		return 0;
	a->offsets = malloc(a->slots * sizeof(*a->offsets));
	if (!a->offsets)
		return failure(-ENOMEM, EXIT_HOST, "no memory for the places of %u messages", a->slots);
	for (uint32_t slot = 0; slot < a->slots; slot++)
		a->offsets[slot] = place_offset(p, slot / q->run % q->n,
						slot / q->run / q->n * q->run + slot % q->run);
	return 0;
}

/* Of each queue pair the largest power of two within the bound, so that a place is found by masking. */
static void places_share(uint64_t stride, uint32_t slots, uint32_t queues, struct places *ret) {
	const uint64_t most = MAX(SHARED_BYTES / queues, QUEUE_BYTES);

	*ret = (struct places) { .n = 1, .factor = 1, .stride = stride };
	while (ret->n * 2 * queues <= slots && ret->n * 2 * stride <= most)
		ret->n *= 2;
	ret->mask = ret->n - 1;
	ret->region = ret->n * stride;
}

int arena_open(struct arena *ret, uint64_t slot_bytes, uint32_t slots, const struct queues *queues, bool distinct,
	       const struct memory_kind kinds[2]) {
	const struct queues *q = queues ? queues : &one_queue;
	uint64_t stride;
	struct places p = { .factor = 1, .mask = UINT32_MAX };
	uint32_t n = slots;
	struct arena a;
	int e;

	/* Messages of different slots never share a cache line (64 bytes on x86-64, 128 fetched as a pair). */
	stride = round_up(slot_bytes, 128);
	if (!distinct) {
		places_share(stride, slots, q->n, &p);
		n = p.n * q->n;
	}
	if (stride > (SIZE_MAX - 2 * JOB_HUGE_1G) / 2 / n)
		return failure(-ENOMEM, EXIT_HOST, "%u buffers of %llu bytes are more than this host can address; "
			       "lower --size or --outstanding", n, (unsigned long long) slot_bytes);
	a = (struct arena) {
		.length = 2 * round_up(stride * n, HALF_UNIT),
		.slot_bytes = slot_bytes,
		.stride = stride,
		.slots = slots,
		.window = slots,
		.distinct = n,
		.factor = p.factor,
		.mask = p.mask,
	};
	e = distinct ? 0 : offsets_open(&a, q, &p);
	return e < 0 ? e : map_halves(a, kinds, ret);
}

int arena_open_scattered(struct arena *ret, uint64_t bytes, uint64_t slot_bytes, uint32_t window,
			 const struct queues *queues, bool distinct, const struct memory_kind kinds[2]) {
	const struct queues *q = queues ? queues : &one_queue;
	struct places p;
	struct arena a;
	uint32_t slots;
	int e;

	places_scatter(bytes / q->n, slot_bytes, JOB_PIECES_MAX / q->n, &p);
	e = distinct ? places_suffice(&p, bytes, slot_bytes, q->n, window) : 0;
	if (e < 0)
		return e;
	slots = MAX(p.n / (window / q->n), 1u) * window;
	a = (struct arena) {
		.length = 2 * round_up(bytes, HALF_UNIT),
		.slot_bytes = slot_bytes,
		.stride = p.stride,
		.slots = slots,
		.window = window,
		.distinct = distinct ? slots : 1,
		.factor = p.factor,
		.mask = p.mask,
	};
	e = offsets_open(&a, q, &p);
	return e < 0 ? e : map_halves(a, kinds, ret);
}

int arena_open_flat(struct arena *ret, uint64_t bytes, uint32_t slots, bool verified, const struct memory_kind *kind) {
	uint64_t length;
	struct arena a;
	int e;

	if (bytes > SIZE_MAX / 4 - JOB_HUGE_1G)
		return failure(-ENOMEM, EXIT_HOST, "a buffer of %llu bytes is more than this host can address; "
			       "lower --buffer, --size or --batch", (unsigned long long) bytes);
	length = round_up(bytes, HALF_UNIT);
	a = (struct arena) { .length = 2 * length, .slot_bytes = bytes, .stride = length, .slots = slots,
			     .window = slots, .distinct = 1, .n_regions = 1 };
	e = map_region(kind, length, &a.regions[0]);
	if (e == 0 && a.regions[0].gpu && verified)
		e = open_view(&a.views[0], &a.regions[0], length);
	if (e < 0) {
		arena_close(&a);
		return e;
	}
	a.tx = a.rx = a.regions[0].base;
	a.view_tx = a.view_rx = a.regions[0].gpu ? a.views[0].base : a.tx;
	*ret = a;
	return 0;
}

int arena_open_bounce(struct arena *ret, const struct arena *of) {
	const struct region *halves[2] = { arena_tx_region(of), arena_rx_region(of) };
	struct arena a = *of;
	int e = 0;

	memset(a.views, 0, sizeof(a.views));
	a.n_regions = 2;
	for (size_t i = 0; i < ELEMENTSOF(halves); i++)
		a.regions[i] = (struct region) { .borrowed = true };
	for (size_t i = 0; i < ELEMENTSOF(halves) && e == 0; i++) {
		if (!halves[i]->gpu) {
			a.regions[i] = *halves[i];
			a.regions[i].borrowed = true;
			continue;
		}
		e = open_view(&a.views[i], halves[i], of->length / 2);
		if (e == 0)
			a.regions[i] = (struct region) { .base = a.views[i].base, .length = a.views[i].length,
							 .borrowed = true };
	}
	a.tx = a.view_tx = a.regions[0].base;
	a.rx = a.view_rx = a.regions[1].base;
	if (e < 0) {
		arena_close(&a);
		return e;
	}
	*ret = a;
	return 0;
}

void arena_close(struct arena *arena) {
	if (!arena->regions[0].borrowed)
		free(arena->offsets);
	for (size_t i = 0; i < ELEMENTSOF(arena->views); i++)
		close_view(&arena->views[i]);
	for (size_t i = 0; i < ELEMENTSOF(arena->regions); i++)
		unmap_region(&arena->regions[i]);
	*arena = (struct arena) { 0 };
}

static int copy_slot(const struct region *r, uint8_t *memory, uint8_t *view, uint64_t size,
		     enum gpu_direction direction) {
	if (!r->gpu)
		return 0;
	return direction == GPU_COPY_IN ? r->gpu->runtime->copy(r->gpu, memory, view, size, direction)
					: r->gpu->runtime->copy(r->gpu, view, memory, size, direction);
}

int arena_push_tx(const struct arena *a, uint32_t slot, uint64_t size) {
	return copy_slot(arena_tx_region(a), arena_tx(a, slot), arena_tx_view(a, slot), size, GPU_COPY_IN);
}

int arena_push_rx(const struct arena *a, uint32_t slot, uint64_t size) {
	return copy_slot(arena_rx_region(a), arena_rx(a, slot), arena_rx_view(a, slot), size, GPU_COPY_IN);
}

int arena_pull_rx(const struct arena *a, uint32_t slot, uint64_t size) {
	return copy_slot(arena_rx_region(a), arena_rx(a, slot), arena_rx_view(a, slot), size, GPU_COPY_OUT);
}

int arena_pull(const struct arena *a, uint64_t offset, uint64_t size) {
	return copy_slot(&a->regions[0], a->rx + offset, a->view_rx + offset, size, GPU_COPY_OUT);
}

int arena_push(const struct arena *a, uint64_t offset, uint64_t size) {
	return copy_slot(&a->regions[0], a->tx + offset, a->view_tx + offset, size, GPU_COPY_IN);
}

void arena_gpu_name(const struct arena *a, char *ret, size_t size) {
	const struct gpu *tx = arena_tx_region(a)->gpu, *rx = arena_rx_region(a)->gpu, *first = tx ? tx : rx;

	ret[0] = '\0';
	if (first && tx && rx && tx != rx && !streq(tx->name, rx->name))
		(void) snprintf(ret, size, "%s, %s", tx->name, rx->name);
	else if (first)
		(void) snprintf(ret, size, "%s", first->name);
}
