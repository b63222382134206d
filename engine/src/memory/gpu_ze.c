/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intel: oneAPI Level Zero. Declared after its ze_api.h (1.0 and newer):
 * handles are pointers, every structure begins with its type and a chain of extensions.
 * GPUs are counted over all drivers, in the order in which the loader lists them.
 */
#include <stdio.h>

#include "gpu.h"
#include "base/message.h"

typedef unsigned ze_result_t;           /* 0: success */
typedef void *ze_handle;

enum {
	ZE_INIT_FLAG_GPU_ONLY = 1,
	ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES = 0x3,
	ZE_STRUCTURE_TYPE_CONTEXT_DESC = 0xd,
	ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC = 0xe,
	ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC = 0x15,
	ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES = 0x17,
	ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC = 0x18,
	ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD = 0x1a,
	ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES = 0x10008,
	ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF = 2,
	ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS = 1,
	ZE_DEVICE_TYPE_GPU = 1,
	ZE_MAX_DEVICE_NAME = 256,

	DRIVERS_MAX = 8,                /* Intel ships two at most, one for each generation of GPUs */
	DEVICES_MAX = 64,
};

/* What we read of ze_device_properties_t is where it has been since 1.0. */
struct ze_device_properties {
	int type;
	void *next;
	int device_type;
	uint32_t vendor, device, flags, subdevice, core_clock;
	uint64_t max_alloc;
	uint32_t contexts, priorities, threads, simd, units, subslices, slices;
	uint64_t timer_resolution;
	uint32_t timestamp_bits, kernel_timestamp_bits;
	uint8_t uuid[16];
	char name[ZE_MAX_DEVICE_NAME];
};

/* ze_pci_ext_properties_t; its speed of the link follows the address. */
struct ze_pci_properties {
	int type;
	void *next;
	uint32_t domain, bus, slot, function;
	int32_t generation, width;
	int64_t bandwidth;
};

struct ze_context_desc {
	int type;
	const void *next;
	uint32_t flags;
};

struct ze_queue_desc {
	int type;
	const void *next;
	uint32_t ordinal, index, flags;
	int mode, priority;
};

struct ze_alloc_desc {
	int type;
	const void *next;
	uint32_t flags, ordinal;
};

struct ze_export_desc {
	int type;
	const void *next;
	uint32_t flags;
};

struct ze_export_fd {
	int type;
	const void *next;
	uint32_t flags;
	int fd;
};

struct ze_alloc_properties {
	int type;
	void *next;
	int memory_type;
	uint64_t id, page_size;
};

struct ze_gpu {
	struct gpu gpu;                 /* must be first */
	ze_handle device, context, list;
	bool exportable;                /* its memory was asked for with the wish to export it */
};

static struct {
	ze_result_t (*init)(uint32_t flags);
	ze_result_t (*driver_get)(uint32_t *count, ze_handle *ret);
	ze_result_t (*device_get)(ze_handle driver, uint32_t *count, ze_handle *ret);
	ze_result_t (*device_get_properties)(ze_handle device, struct ze_device_properties *ret);
	ze_result_t (*device_pci)(ze_handle device, struct ze_pci_properties *ret);
	ze_result_t (*context_create)(ze_handle driver, const struct ze_context_desc *desc, ze_handle *ret);
	ze_result_t (*context_destroy)(ze_handle context);
	ze_result_t (*list_create)(ze_handle context, ze_handle device, const struct ze_queue_desc *desc,
				   ze_handle *ret);
	ze_result_t (*list_destroy)(ze_handle list);
	ze_result_t (*list_copy)(ze_handle list, void *to, const void *from, size_t bytes, ze_handle signal,
				 uint32_t waits, ze_handle *events);
	ze_result_t (*mem_alloc)(ze_handle context, const struct ze_alloc_desc *desc, size_t bytes, size_t alignment,
				 ze_handle device, void **ret);
	ze_result_t (*mem_free)(ze_handle context, void *memory);
	ze_result_t (*mem_get_properties)(ze_handle context, const void *memory, struct ze_alloc_properties *ret,
					  ze_handle *ret_device);
} ze;

static const struct gpu_symbol symbols[] = {
	{ "zeInit", &ze.init, false },
	{ "zeDriverGet", &ze.driver_get, false },
	{ "zeDeviceGet", &ze.device_get, false },
	{ "zeDeviceGetProperties", &ze.device_get_properties, false },
	{ "zeDevicePciGetPropertiesExt", &ze.device_pci, true }, /* an extension of 1.3 */
	{ "zeContextCreate", &ze.context_create, false },
	{ "zeContextDestroy", &ze.context_destroy, false },
	{ "zeCommandListCreateImmediate", &ze.list_create, false },
	{ "zeCommandListDestroy", &ze.list_destroy, false },
	{ "zeCommandListAppendMemoryCopy", &ze.list_copy, false },
	{ "zeMemAllocDevice", &ze.mem_alloc, false },
	{ "zeMemFree", &ze.mem_free, false },
	{ "zeMemGetAllocProperties", &ze.mem_get_properties, false },
};

/* Level Zero has no words for its errors; these are those that an operator can do something about (ze_result_t). */
static const char *error_text(ze_result_t e) {
	static char number[48];

	switch (e) {
	case 0x70000001:
		return "the device was lost, reset or removed";
	case 0x70000002:
		return "out of host memory";
	case 0x70000003:
		return "out of device memory";
	case 0x70010000:
		return "insufficient permissions";
	case 0x78000001:
		return "no driver of a GPU is there (on Debian: libze-intel-gpu1)";
	default:
		(void) snprintf(number, sizeof(number), "ze_result_t 0x%x", e);
		return number;
	}
}

static struct ze_gpu *ze_gpu(struct gpu *g) {
	return (struct ze_gpu *) g;
}

static void ze_close(struct gpu *g) {
	struct ze_gpu *z = ze_gpu(g);

	if (z->list)
		(void) ze.list_destroy(z->list);
	if (z->context)
		(void) ze.context_destroy(z->context);
	free(z);
}

/* The GPU of that number, counted over all drivers; all are counted. */
static ze_result_t search(uint32_t ordinal, uint32_t *ret_count, struct ze_gpu *z, ze_handle *ret_driver) {
	uint32_t drivers = DRIVERS_MAX, number = 0;
	ze_handle all[DRIVERS_MAX];
	ze_result_t e;

	e = ze.driver_get(&drivers, all);
	for (uint32_t d = 0; e == 0 && d < drivers; d++) {
		ze_handle devices[DEVICES_MAX];
		uint32_t n = DEVICES_MAX;

		e = ze.device_get(all[d], &n, devices);
		for (uint32_t i = 0; e == 0 && i < n; i++) {
			struct ze_device_properties p = { .type = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES };

			e = ze.device_get_properties(devices[i], &p);
			if (e != 0 || p.device_type != ZE_DEVICE_TYPE_GPU || number++ != ordinal)
				continue;
			z->device = devices[i];
			z->gpu.fabric_device = (uint64_t) d << 16 | i; /* fi_hmem_ze_device() of fi_mr(3) */
			(void) snprintf(z->gpu.name, sizeof(z->gpu.name), "%.*s", (int) sizeof(z->gpu.name) - 1,
					p.name);
			*ret_driver = all[d];
		}
	}
	*ret_count = number;
	return e;
}

static int ze_start(uint32_t *ret_count) {
	struct ze_gpu first = { .device = NULL };
	ze_handle driver;
	uint32_t count = 0;
	ze_result_t e;
	int r;

	r = gpu_library_load(&gpu_ze, symbols, ELEMENTSOF(symbols));
	if (r < 0)
		return r;
	e = ze.init(ZE_INIT_FLAG_GPU_ONLY);
	if (e == 0)
		e = search(0, &count, &first, &driver);
	if (e != 0 || count == 0)
		return gpu_none(&gpu_ze, e ? error_text(e) : NULL);
	*ret_count = count;
	return 0;
}

static void ze_address(uint32_t ordinal, char ret[GPU_ADDRESS_TEXT]) {
	struct ze_pci_properties p = { .type = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES };
	struct ze_gpu z = { .device = NULL };
	ze_handle driver;
	uint32_t count;

	ret[0] = '\0';
	if (ze.device_pci && search(ordinal, &count, &z, &driver) == 0 && z.device &&
	    ze.device_pci(z.device, &p) == 0)
		(void) snprintf(ret, GPU_ADDRESS_TEXT, "%04x:%02x:%02x.%x", p.domain, p.bus, p.slot, p.function);
}

static int open_device(struct ze_gpu *z) {
	const struct ze_context_desc context = { .type = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
	const struct ze_queue_desc queue = { .type = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
					     .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS };
	ze_handle driver = NULL;
	uint32_t count;
	ze_result_t e;

	e = search(z->gpu.ordinal, &count, z, &driver);
	if (e == 0)
		e = ze.context_create(driver, &context, &z->context);
	/* Group 0 does everything; a list of its own completes each copy before it returns. */
	if (e == 0)
		e = ze.list_create(z->context, z->device, &queue, &z->list);
	return e == 0 ? 0 : gpu_not_opened(&z->gpu, error_text(e));
}

static int ze_open(uint32_t ordinal, struct gpu **ret) {
	struct ze_gpu *z;
	int r;

	z = calloc(1, sizeof(*z));
	if (!z)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a GPU's description");
	z->gpu = (struct gpu) { .runtime = &gpu_ze, .ordinal = ordinal };
	r = open_device(z);
	if (r < 0) {
		ze_close(&z->gpu);
		return r;
	}
	*ret = &z->gpu;
	return 0;
}

static int ze_alloc(struct gpu *g, size_t length, void **ret) {
	const struct ze_export_desc wish = { .type = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC,
					     .flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF };
	struct ze_alloc_desc desc = { .type = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, .next = &wish };
	struct ze_gpu *z = ze_gpu(g);
	ze_result_t e;

	e = ze.mem_alloc(z->context, &desc, length, (size_t) 2 << 20, z->device, ret);
	z->exportable = e == 0;
	if (e != 0) {
		desc.next = NULL;
		e = ze.mem_alloc(z->context, &desc, length, (size_t) 2 << 20, z->device, ret);
	}
	return e == 0 ? 0 : gpu_no_memory(g, length, error_text(e));
}

static void ze_free(struct gpu *g, void *memory) {
	(void) ze.mem_free(ze_gpu(g)->context, memory);
}

static int ze_copy(struct gpu *g, void *to, const void *from, size_t length, enum gpu_direction direction) {
	ze_result_t e = ze.list_copy(ze_gpu(g)->list, to, from, length, NULL, 0, NULL);

	return likely(e == 0) ? 0 : gpu_copy_failed(g, length, direction, error_text(e));
}

static int ze_export(struct gpu *g, void *memory, size_t length, enum gpu_mapping mapping, int *ret_fd,
		     uint64_t *ret_offset) {
	struct ze_export_fd fd = { .type = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD,
				   .flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF, .fd = -1 };
	struct ze_alloc_properties p = { .type = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES, .next = &fd };
	struct ze_gpu *z = ze_gpu(g);

	(void) length; /* a dmabuf is of the whole allocation */
	if (mapping != GPU_MAPPING_DEFAULT || !z->exportable ||
	    ze.mem_get_properties(z->context, memory, &p, NULL) != 0 || fd.fd < 0)
		return -EOPNOTSUPP;
	*ret_fd = fd.fd;
	*ret_offset = 0;
	return 0;
}

static const char *const libraries[] = { "libze_loader.so.1", "libze_loader.so", NULL };

const struct gpu_runtime gpu_ze = {
	.type = MEMORY_ZE,
	.name = "ze",
	.maker = "Intel",
	.libraries = libraries,
	.devices = "/dev/dri/renderD*",
	.remedy = "install the Level Zero loader and Intel's driver for it (on Debian: libze1, libze-intel-gpu1)",
	.start = ze_start,
	.address = ze_address,
	.open = ze_open,
	.alloc = ze_alloc,
	.free = ze_free,
	.copy = ze_copy,
	.export = ze_export,
	/* .pin: Level Zero locks host memory only where it allocates it. */
	.close = ze_close,
};
