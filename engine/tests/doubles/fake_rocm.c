/* SPDX-License-Identifier: Apache-2.0 */
/* Test double of libamdhip64.so, and of libhsa-runtime64.so.1 beneath it (fake_gpu.h): one library under both names. */
#include "fake_gpu.h"

#include <stdio.h>

enum {
	SUCCESS = 0,
	OUT_OF_MEMORY = 2,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	UNKNOWN = 999,
	HOST_TO_DEVICE = 1,
	DEVICE_TO_HOST = 2,
};

const char fake_runtime[] = "HIP";
static _Thread_local int current = -1;    /* as of CUDA: of this thread */

#define API __attribute__((visibility("default")))

API int hipInit(unsigned flags);
API const char *hipGetErrorString(int error);
API int hipGetDeviceCount(int *ret);
API int hipDeviceGetName(char *ret, int length, int device);
API int hipDeviceGetPCIBusId(char *ret, int length, int device);
API int hipSetDevice(int device);
API int hipMalloc(void **ret, size_t bytes);
API int hipFree(void *memory);
API int hipMemcpy(void *to, const void *from, size_t bytes, int kind);
API int hipHostRegister(void *memory, size_t bytes, unsigned flags);
API int hipHostUnregister(void *memory);
API int hsa_amd_portable_export_dmabuf(const void *memory, size_t bytes, int *ret_fd, uint64_t *ret_offset);

int hipInit(unsigned flags) {
	fake_called("hipInit");
	FAKE_REQUIRE(flags == 0, "hipInit() knows no flags");
	fake_initialise();
	return fake_count() > 0 ? SUCCESS : NO_DEVICE;
}

const char *hipGetErrorString(int error) {
	return error == OUT_OF_MEMORY ? "out of memory"
				      : error == NO_DEVICE ? "no ROCm-capable device is detected" : "unknown error";
}

int hipGetDeviceCount(int *ret) {
	FAKE_REQUIRE(fake_initialised(), "hipGetDeviceCount() before hipInit()");
	*ret = fake_count();
	return SUCCESS;
}

int hipDeviceGetName(char *ret, int length, int device) {
	(void) snprintf(ret, (size_t) length, "sim_rocm%d", device);
	return SUCCESS;
}

int hipDeviceGetPCIBusId(char *ret, int length, int device) {
	FAKE_REQUIRE(fake_initialised(), "hipDeviceGetPCIBusId() before hipInit()");
	if (device < 0 || device >= fake_count() || length < 13)
		return INVALID_DEVICE;
	return fake_pci(device, ret, (size_t) length) ? SUCCESS : UNKNOWN;
}

int hipSetDevice(int device) {
	fake_called("hipSetDevice");
	FAKE_REQUIRE(fake_initialised(), "hipSetDevice() before hipInit()");
	if (device < 0 || device >= fake_count())
		return INVALID_DEVICE;
	current = device;
	return SUCCESS;
}

int hipMalloc(void **ret, size_t bytes) {
	fake_called("hipMalloc");
	FAKE_REQUIRE(current >= 0, "hipMalloc() before hipSetDevice()");
	if (fake_alloc(bytes, ret) != FAKE_OK)
		return OUT_OF_MEMORY;
	fake_make_ready(*ret);
	return SUCCESS;
}

int hipFree(void *memory) {
	fake_called("hipFree");
	fake_free(memory);
	return SUCCESS;
}

int hipMemcpy(void *to, const void *from, size_t bytes, int kind) {
	FAKE_REQUIRE(kind == HOST_TO_DEVICE || kind == DEVICE_TO_HOST, "a copy of another kind");
	return fake_copy(to, from, bytes, kind == HOST_TO_DEVICE) == FAKE_OK ? SUCCESS : UNKNOWN;
}

int hipHostRegister(void *memory, size_t bytes, unsigned flags) {
	FAKE_REQUIRE(current >= 0 && flags == 0, "hipHostRegister() before hipSetDevice()");
	fake_pin(memory, bytes);
	return SUCCESS;
}

int hipHostUnregister(void *memory) {
	fake_unpin(memory);
	return SUCCESS;
}

int hsa_amd_portable_export_dmabuf(const void *memory, size_t bytes, int *ret_fd, uint64_t *ret_offset) {
	fake_called("hsa_amd_portable_export_dmabuf");
	*ret_fd = fake_export(memory, bytes);
	*ret_offset = 0;
	return *ret_fd < 0 ? 1 : 0;
}
