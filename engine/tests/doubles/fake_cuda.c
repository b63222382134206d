/* SPDX-License-Identifier: Apache-2.0 */
/* Test double of libcuda.so.1 (fake_gpu.h). Codes after the CUDA Driver API reference, CUresult. */
#include "fake_gpu.h"

#include <stdio.h>

enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	LAUNCH_FAILED = 719,
	NOT_SUPPORTED = 801,
	DEVICES_MAX = 16,
	SYNC_MEMOPS = 6,
	DMA_BUF_SUPPORTED = 124,
};

typedef unsigned long long pointer;

const char fake_runtime[] = "CUDA";
static unsigned retained[DEVICES_MAX];
static _Thread_local int current = -1;  /* device whose context is current in this thread */

#define API __attribute__((visibility("default")))

API int cuInit(unsigned flags);
API int cuGetErrorString(int error, const char **ret);
API int cuDeviceGetCount(int *ret);
API int cuDeviceGet(int *ret, int ordinal);
API int cuDeviceGetName(char *ret, int length, int device);
API int cuDeviceGetPCIBusId(char *ret, int length, int device);
API int cuDeviceGetAttribute(int *ret, int attribute, int device);
API int cuDevicePrimaryCtxRetain(void **ret, int device);
API int cuDevicePrimaryCtxRelease_v2(int device);
API int cuCtxSetCurrent(void *context);
API int cuMemAlloc_v2(pointer *ret, size_t bytes);
API int cuMemFree_v2(pointer p);
API int cuMemcpyHtoD_v2(pointer to, const void *from, size_t bytes);
API int cuMemcpyDtoH_v2(void *to, pointer from, size_t bytes);
API int cuPointerSetAttribute(const void *value, int attribute, pointer p);
API int cuMemGetHandleForAddressRange(void *ret, pointer p, size_t bytes, int type, unsigned long long flags);
API int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags);
API int cuMemHostUnregister(void *memory);

int cuInit(unsigned flags) {
	fake_called("cuInit");
	FAKE_REQUIRE(flags == 0, "cuInit() knows no flags");
	fake_initialise();
	return fake_count() > 0 ? SUCCESS : NO_DEVICE;
}

int cuGetErrorString(int error, const char **ret) {
	static const struct {
		int code;
		const char *text;
	} known[] = { { OUT_OF_MEMORY, "out of memory" },
		      { NO_DEVICE, "no CUDA-capable device is detected" },
		      { LAUNCH_FAILED, "unspecified launch failure" } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].code == error) {
			*ret = known[i].text;
			return SUCCESS;
		}
	return INVALID_VALUE;
}

int cuDeviceGetCount(int *ret) {
	FAKE_REQUIRE(fake_initialised(), "cuDeviceGetCount() before cuInit()");
	*ret = fake_count();
	return SUCCESS;
}

int cuDeviceGet(int *ret, int ordinal) {
	FAKE_REQUIRE(fake_initialised(), "cuDeviceGet() before cuInit()");
	if (ordinal < 0 || ordinal >= fake_count())
		return INVALID_DEVICE;
	*ret = ordinal;
	return SUCCESS;
}

int cuDeviceGetName(char *ret, int length, int device) {
	(void) snprintf(ret, (size_t) length, "sim_cuda%d", device);
	return SUCCESS;
}

int cuDeviceGetPCIBusId(char *ret, int length, int device) {
	FAKE_REQUIRE(fake_initialised() && device >= 0 && device < fake_count(),
		     "the address of a device that is none");
	FAKE_REQUIRE(length >= 13, "too little room for a PCI address");
	return fake_pci(device, ret, (size_t) length) ? SUCCESS : INVALID_VALUE;
}

int cuDeviceGetAttribute(int *ret, int attribute, int device) {
	FAKE_REQUIRE(fake_initialised() && device >= 0 && device < fake_count(),
		     "an attribute of a device that is none");
	*ret = attribute == DMA_BUF_SUPPORTED && fake_can_export();
	return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **ret, int device) {
	fake_called("cuDevicePrimaryCtxRetain");
	FAKE_REQUIRE(fake_initialised() && device >= 0 && device < fake_count(), "a context of a device that is none");
	retained[device]++;
	*ret = &retained[device];
	return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
	fake_called("cuDevicePrimaryCtxRelease");
	FAKE_REQUIRE(device >= 0 && device < DEVICES_MAX && retained[device] > 0,
		     "released a context that was not retained");
	FAKE_REQUIRE(current != device, "released the context that is current");
	retained[device]--;
	/* Another GPU may still hold some: that is not told apart here. */
	for (int i = 0; i < DEVICES_MAX; i++)
		if (retained[i] > 0)
			return SUCCESS;
	FAKE_REQUIRE(fake_live() == 0, "released the last context before its memory was freed");
	return SUCCESS;
}

int cuCtxSetCurrent(void *context) {
	fake_called("cuCtxSetCurrent");
	FAKE_REQUIRE(fake_initialised(), "cuCtxSetCurrent() before cuInit()");
	current = context ? (int) ((unsigned *) context - retained) : -1;
	FAKE_REQUIRE(current < 0 || retained[current] > 0, "made a context current that was not retained");
	return SUCCESS;
}

int cuMemAlloc_v2(pointer *ret, size_t bytes) {
	void *p = NULL;

	fake_called("cuMemAlloc");
	FAKE_REQUIRE(current >= 0, "cuMemAlloc() without a current context");
	if (fake_alloc(bytes, &p) != FAKE_OK)
		return OUT_OF_MEMORY;
	*ret = (pointer) (uintptr_t) p;
	return SUCCESS;
}

int cuMemFree_v2(pointer p) {
	fake_called("cuMemFree");
	FAKE_REQUIRE(current >= 0, "cuMemFree() without a current context");
	fake_free((void *) (uintptr_t) p);
	return SUCCESS;
}

static int copy(void *to, const void *from, size_t bytes, bool into) {
	FAKE_REQUIRE(current >= 0, "a copy without a current context");
	return fake_copy(to, from, bytes, into) == FAKE_OK ? SUCCESS : LAUNCH_FAILED;
}

int cuMemcpyHtoD_v2(pointer to, const void *from, size_t bytes) {
	return copy((void *) (uintptr_t) to, from, bytes, true);
}

int cuMemcpyDtoH_v2(void *to, pointer from, size_t bytes) {
	return copy(to, (const void *) (uintptr_t) from, bytes, false);
}

int cuPointerSetAttribute(const void *value, int attribute, pointer p) {
	fake_called("cuPointerSetAttribute");
	FAKE_REQUIRE(attribute == SYNC_MEMOPS && *(const unsigned *) value == 1, "another attribute than SYNC_MEMOPS");
	fake_make_ready((const void *) (uintptr_t) p);
	return SUCCESS;
}

int cuMemGetHandleForAddressRange(void *ret, pointer p, size_t bytes, int type, unsigned long long flags) {
	int fd;

	fake_called(flags ? "cuMemGetHandleForAddressRange, PCIe" : "cuMemGetHandleForAddressRange");
	FAKE_REQUIRE(type == 1 && flags <= 1, "another handle than a dmabuf's descriptor");
	if (flags && !fake_can_map_pcie())
		return INVALID_VALUE;
	FAKE_REQUIRE(p % 4096 == 0 && bytes % 4096 == 0, "a range that is no whole pages");
	fd = fake_export((const void *) (uintptr_t) p, bytes);
	if (fd < 0)
		return NOT_SUPPORTED;
	*(int *) ret = fd;
	return SUCCESS;
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
	FAKE_REQUIRE(current >= 0 && flags == 0, "cuMemHostRegister() without a current context");
	fake_pin(memory, bytes);
	return SUCCESS;
}

int cuMemHostUnregister(void *memory) {
	FAKE_REQUIRE(current >= 0, "cuMemHostUnregister() without a current context");
	fake_unpin(memory);
	return SUCCESS;
}
