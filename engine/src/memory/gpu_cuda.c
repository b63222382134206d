/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA: the CUDA driver's library. Declared after the CUDA Driver API reference,
 * chapters "Data types used by CUDA driver", "Device Management", "Primary Context Management" and "Memory Management";
 * the driver keeps these names and numbers stable.
 */
#include <stdio.h>

#include "gpu.h"
#include "base/message.h"

typedef int CUresult;                   /* 0: success */
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;

enum {
	CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
	CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
	CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1,
	CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE = 1,
};

struct cuda_gpu {
	struct gpu gpu;                 /* must be first */
	CUdevice device;
	CUcontext context;
};

static struct {
	CUresult (*init)(unsigned flags);
	CUresult (*get_error_string)(CUresult error, const char **ret);
	CUresult (*device_get_count)(int *ret);
	CUresult (*device_get)(CUdevice *ret, int ordinal);
	CUresult (*device_get_name)(char *ret, int length, CUdevice device);
	CUresult (*device_get_pci_bus_id)(char *ret, int length, CUdevice device);
	CUresult (*device_get_attribute)(int *ret, int attribute, CUdevice device);
	CUresult (*primary_retain)(CUcontext *ret, CUdevice device);
	CUresult (*primary_release)(CUdevice device);
	CUresult (*set_current)(CUcontext context);
	CUresult (*mem_alloc)(CUdeviceptr *ret, size_t bytes);
	CUresult (*mem_free)(CUdeviceptr pointer);
	CUresult (*copy_in)(CUdeviceptr to, const void *from, size_t bytes);
	CUresult (*copy_out)(void *to, CUdeviceptr from, size_t bytes);
	CUresult (*pointer_set_attribute)(const void *value, int attribute, CUdeviceptr pointer);
	CUresult (*get_handle)(void *ret, CUdeviceptr pointer, size_t bytes, int type, unsigned long long flags);
	CUresult (*host_register)(void *memory, size_t bytes, unsigned flags);
	CUresult (*host_unregister)(void *memory);
} cuda;

/* The names that cuda.h's macros stand for: _v2 where the 64-bit interface replaced the first one. */
static const struct gpu_symbol symbols[] = {
	{ "cuInit", &cuda.init, false },
	{ "cuGetErrorString", &cuda.get_error_string, false },
	{ "cuDeviceGetCount", &cuda.device_get_count, false },
	{ "cuDeviceGet", &cuda.device_get, false },
	{ "cuDeviceGetName", &cuda.device_get_name, false },
	{ "cuDeviceGetPCIBusId", &cuda.device_get_pci_bus_id, false },
	{ "cuDeviceGetAttribute", &cuda.device_get_attribute, false },
	{ "cuDevicePrimaryCtxRetain", &cuda.primary_retain, false },
	{ "cuDevicePrimaryCtxRelease_v2", &cuda.primary_release, false },
	{ "cuCtxSetCurrent", &cuda.set_current, false },
	{ "cuMemAlloc_v2", &cuda.mem_alloc, false },
	{ "cuMemFree_v2", &cuda.mem_free, false },
	{ "cuMemcpyHtoD_v2", &cuda.copy_in, false },
	{ "cuMemcpyDtoH_v2", &cuda.copy_out, false },
	{ "cuPointerSetAttribute", &cuda.pointer_set_attribute, false },
	{ "cuMemGetHandleForAddressRange", &cuda.get_handle, true }, /* since CUDA 11.7 */
	{ "cuMemHostRegister_v2", &cuda.host_register, true },
	{ "cuMemHostUnregister", &cuda.host_unregister, true },
};

static const char *error_text(CUresult error) {
	static char number[32];
	const char *text = NULL;

	if (cuda.get_error_string(error, &text) == 0 && text)
		return text;
	(void) snprintf(number, sizeof(number), "CUDA error %d", error);
	return number;
}

static struct cuda_gpu *cuda_gpu(struct gpu *g) {
	return (struct cuda_gpu *) g;
}

/*
 * Calls work on the GPU whose context is current in this thread (CUDA Driver API, "Context Management");
 * transmit and receive memory may lie in two.
 */
static CUresult use(struct gpu *g) {
	static _Thread_local CUcontext current;
	CUcontext wanted = cuda_gpu(g)->context;
	CUresult e;

	if (likely(wanted == current && wanted))
		return 0;
	e = cuda.set_current(wanted);
	current = e == 0 ? wanted : NULL;
	return e;
}

static CUdeviceptr pointer_of(const void *p) {
	return (CUdeviceptr) (uintptr_t) p;
}

static void cuda_close(struct gpu *g) {
	struct cuda_gpu *c = cuda_gpu(g);

	if (c->context) {
		CUdevice device = c->device;

		c->context = NULL;
		(void) use(g); /* forgets it */
		(void) cuda.primary_release(device);
	}
	free(c);
}

static int open_device(struct cuda_gpu *c) {
	CUresult e;

	e = cuda.device_get(&c->device, (int) c->gpu.ordinal);
	if (e == 0)
		e = cuda.device_get_name(c->gpu.name, sizeof(c->gpu.name), c->device);
	/*
	 * The primary context is the one that the CUDA runtime in libfabric uses:
	 * memory is shared with it, not handed over.
	 */
	if (e == 0)
		e = cuda.primary_retain(&c->context, c->device);
	if (e == 0)
		e = use(&c->gpu);
	return e == 0 ? 0 : gpu_not_opened(&c->gpu, error_text(e));
}

static int cuda_start(uint32_t *ret_count) {
	int count = 0, r;
	CUresult e;

	r = gpu_library_load(&gpu_cuda, symbols, ELEMENTSOF(symbols));
	if (r < 0)
		return r;
	e = cuda.init(0);
	if (e == 0)
		e = cuda.device_get_count(&count);
	if (e != 0 || count <= 0)
		return gpu_none(&gpu_cuda, e ? error_text(e) : NULL);
	*ret_count = (uint32_t) count;
	return 0;
}

static void cuda_address(uint32_t ordinal, char ret[GPU_ADDRESS_TEXT]) {
	CUdevice device;

	if (cuda.device_get(&device, (int) ordinal) != 0 ||
	    cuda.device_get_pci_bus_id(ret, GPU_ADDRESS_TEXT, device) != 0)
		ret[0] = '\0';
}

static int cuda_open(uint32_t ordinal, struct gpu **ret) {
	struct cuda_gpu *c;
	int r;

	c = calloc(1, sizeof(*c));
	if (!c)
		return failure(-ENOMEM, EXIT_HOST, "no memory for a GPU's description");
	c->gpu = (struct gpu) { .runtime = &gpu_cuda, .ordinal = ordinal, .fabric_device = ordinal };
	r = open_device(c);
	if (r < 0) {
		cuda_close(&c->gpu);
		return r;
	}
	*ret = &c->gpu;
	return 0;
}

static void cuda_free(struct gpu *g, void *memory) {
	(void) use(g);
	(void) cuda.mem_free(pointer_of(memory));
}

static int cuda_alloc(struct gpu *g, size_t length, void **ret) {
	CUdeviceptr p = 0;
	unsigned on = 1;
	CUresult e;

	e = cuda.mem_alloc(&p, length);
	if (e != 0)
		return gpu_no_memory(g, length, error_text(e));
	/*
	 * Else a copy may still be under way when it returns,
	 * and a network device would read what was there before (GPUDirect RDMA).
	 */
	e = cuda.pointer_set_attribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
	if (e != 0) {
		(void) cuda.mem_free(p);
		return failure(-EIO, EXIT_HOST, "cuda:%u (%s): its copies cannot be made synchronous: %s", g->ordinal,
			       g->name, error_text(e));
	}
	*ret = (void *) (uintptr_t) p;
	return 0;
}

static int cuda_copy(struct gpu *g, void *to, const void *from, size_t length, enum gpu_direction direction) {
	CUresult e;

	e = use(g);
	if (likely(e == 0))
		e = direction == GPU_COPY_IN ? cuda.copy_in(pointer_of(to), from, length)
					     : cuda.copy_out(to, pointer_of(from), length);
	return likely(e == 0) ? 0 : gpu_copy_failed(g, length, direction, error_text(e));
}

static int cuda_export(struct gpu *g, void *memory, size_t length, enum gpu_mapping mapping, int *ret_fd,
		       uint64_t *ret_offset) {
	/* Drivers before CUDA 12.8 refuse the flag. */
	const unsigned long long flags =
		mapping == GPU_MAPPING_PCIE ? CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE : 0;
	int supported = 0, fd = -1;

	if (!cuda.get_handle ||
	    cuda.device_get_attribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, cuda_gpu(g)->device) != 0 ||
	    !supported ||
	    cuda.get_handle(&fd, pointer_of(memory), length, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, flags) != 0)
		return -EOPNOTSUPP;
	*ret_fd = fd;
	*ret_offset = 0; /* the range itself is what was exported */
	return 0;
}

static int cuda_pin(struct gpu *g, void *memory, size_t length) {
	return cuda.host_register && cuda.host_unregister && use(g) == 0 &&
	       cuda.host_register(memory, length, 0) == 0 ? 0 : -EOPNOTSUPP;
}

static void cuda_unpin(struct gpu *g, void *memory) {
	(void) use(g);
	(void) cuda.host_unregister(memory);
}

static const char *const libraries[] = { "libcuda.so.1", "libcuda.so", NULL };

const struct gpu_runtime gpu_cuda = {
	.type = MEMORY_CUDA,
	.name = "cuda",
	.maker = "NVIDIA",
	.libraries = libraries,
	.devices = "/dev/nvidia0 and /dev/nvidiactl",
	.remedy = "install NVIDIA's driver (on Debian: nvidia-driver, libcuda1)",
	.start = cuda_start,
	.address = cuda_address,
	.open = cuda_open,
	.alloc = cuda_alloc,
	.free = cuda_free,
	.copy = cuda_copy,
	.export = cuda_export,
	.pin = cuda_pin,
	.unpin = cuda_unpin,
	.close = cuda_close,
};
