/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD: HIP for memory and copies, and beneath it HSA for a dmabuf.
 * Declared after HIP's hip_runtime_api.h and driver_types.h, and ROCr's hsa.h and hsa_ext_amd.h.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "gpu.h"
#include "base/message.h"

typedef int hipError_t;                 /* 0: success */
typedef int hsa_status_t;               /* 0: success */

enum {
	HIP_MEMCPY_HOST_TO_DEVICE = 1,
	HIP_MEMCPY_DEVICE_TO_HOST = 2,
};

static struct {
	hipError_t (*init)(unsigned flags);
	const char *(*get_error_string)(hipError_t error);
	hipError_t (*get_device_count)(int *ret);
	hipError_t (*device_get_name)(char *ret, int length, int device);
	hipError_t (*device_get_pci_bus_id)(char *ret, int length, int device);
	hipError_t (*set_device)(int device);
	hipError_t (*malloc)(void **ret, size_t bytes);
	hipError_t (*free)(void *memory);
	hipError_t (*memcpy)(void *to, const void *from, size_t bytes, int kind);
	hipError_t (*host_register)(void *memory, size_t bytes, unsigned flags);
	hipError_t (*host_unregister)(void *memory);
} hip;

static const struct gpu_symbol symbols[] = {
	{ "hipInit", &hip.init, false },
	{ "hipGetErrorString", &hip.get_error_string, false },
	{ "hipGetDeviceCount", &hip.get_device_count, false },
	{ "hipDeviceGetName", &hip.device_get_name, false },
	{ "hipDeviceGetPCIBusId", &hip.device_get_pci_bus_id, false },
	{ "hipSetDevice", &hip.set_device, false },
	{ "hipMalloc", &hip.malloc, false },
	{ "hipFree", &hip.free, false },
	{ "hipMemcpy", &hip.memcpy, false },
	{ "hipHostRegister", &hip.host_register, true },
	{ "hipHostUnregister", &hip.host_unregister, true },
};

static void rocm_close(struct gpu *g) {
	free(g); /* HIP has no end: its context goes with the process */
}

static int open_device(struct gpu *g) {
	hipError_t e;

	e = hip.set_device((int) g->ordinal);
	if (e == 0)
		e = hip.device_get_name(g->name, sizeof(g->name), (int) g->ordinal);
	return e == 0 ? 0 : gpu_not_opened(g, hip.get_error_string(e));
}

static int rocm_start(uint32_t *ret_count) {
	int count = 0, r;
	hipError_t e;

	r = gpu_library_load(&gpu_rocm, symbols, ELEMENTSOF(symbols));
	if (r < 0)
		return r;
	e = hip.init(0);
	if (e == 0)
		e = hip.get_device_count(&count);
	if (e != 0 || count <= 0)
		return gpu_none(&gpu_rocm, e ? hip.get_error_string(e) : NULL);
	*ret_count = (uint32_t) count;
	return 0;
}

static void rocm_address(uint32_t ordinal, char ret[GPU_ADDRESS_TEXT]) {
	if (hip.device_get_pci_bus_id(ret, GPU_ADDRESS_TEXT, (int) ordinal) != 0)
		ret[0] = '\0';
}

static int rocm_open(uint32_t ordinal, struct gpu **ret) {
	struct gpu *g;
	int r;

	g = calloc(1, sizeof(*g));
	if (!g)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a GPU's description");
	*g = (struct gpu) { .runtime = &gpu_rocm, .ordinal = ordinal, .fabric_device = ordinal };
	r = open_device(g);
	if (r < 0) {
		rocm_close(g);
		return r;
	}
	*ret = g;
	return 0;
}

static int rocm_alloc(struct gpu *g, size_t length, void **ret) {
	hipError_t e = hip.malloc(ret, length);

	return e == 0 ? 0 : gpu_no_memory(g, length, hip.get_error_string(e));
}

static void rocm_free(struct gpu *g, void *memory) {
	(void) g;
	(void) hip.free(memory);
}

static int rocm_copy(struct gpu *g, void *to, const void *from, size_t length, enum gpu_direction direction) {
	hipError_t e = hip.memcpy(to, from, length,
				  direction == GPU_COPY_IN ? HIP_MEMCPY_HOST_TO_DEVICE : HIP_MEMCPY_DEVICE_TO_HOST);

	return likely(e == 0) ? 0 : gpu_copy_failed(g, length, direction, hip.get_error_string(e));
}

/* HIP itself has none; HSA has, since ROCm 5.6, and HIP has loaded and started it. */
static int rocm_export(struct gpu *g, void *memory, size_t length, enum gpu_mapping mapping, int *ret_fd,
		       uint64_t *ret_offset) {
	hsa_status_t (*export)(const void *memory, size_t bytes, int *ret_fd, uint64_t *ret_offset);
	void *handle = dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_LOCAL),
		*p = handle ? dlsym(handle, "hsa_amd_portable_export_dmabuf") : NULL;
	uint64_t offset = 0;
	int fd = -1;

	(void) g;
	memcpy(&export, &p, sizeof(p));
	if (mapping != GPU_MAPPING_DEFAULT || !p || export(memory, length, &fd, &offset) != 0 || fd < 0)
		return -EOPNOTSUPP;
	*ret_fd = fd;
	*ret_offset = offset;
	return 0;
}

static int rocm_pin(struct gpu *g, void *memory, size_t length) {
	(void) g;
	return hip.host_register && hip.host_unregister && hip.host_register(memory, length, 0) == 0 ? 0 : -EOPNOTSUPP;
}

static void rocm_unpin(struct gpu *g, void *memory) {
	(void) g;
	(void) hip.host_unregister(memory);
}

/* The number follows ROCm's major version (5: Debian 12). */
static const char *const libraries[] = { "libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
					 NULL };

const struct gpu_runtime gpu_rocm = {
	.type = MEMORY_ROCM,
	.name = "rocm",
	.maker = "AMD",
	.libraries = libraries,
	.devices = "/dev/kfd and /dev/dri/renderD*",
	.remedy = "install ROCm's HIP runtime (on Debian: libamdhip64-5)",
	.start = rocm_start,
	.address = rocm_address,
	.open = rocm_open,
	.alloc = rocm_alloc,
	.free = rocm_free,
	.copy = rocm_copy,
	.export = rocm_export,
	.pin = rocm_pin,
	.unpin = rocm_unpin,
	.close = rocm_close,
};
