/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test double of libze_loader.so.1 (fake_gpu.h). Two drivers: the first has a device that is no GPU,
 * the second the GPUs. Structures are read at the offsets that ze_api.h gives them,
 * not through the program's own declarations, so that a wrong one is seen.
 */
#include "fake_gpu.h"

#include <stdio.h>

typedef unsigned result;

enum {
	OUT_OF_DEVICE_MEMORY = 0x70000003,
	UNINITIALIZED = 0x78000001,
	INVALID_ARGUMENT = 0x78000004,
	UNKNOWN = 0x7ffffffe,

	DRIVERS = 2,
	DEVICES_MAX = 16,
	/* ze_device_properties_t and ze_memory_allocation_properties_t, 64 bits */
	PROPERTIES_TYPE = 16, PROPERTIES_NAME = 112,
	PCI_ADDRESS = 16,               /* ze_pci_ext_properties_t: domain, bus, device, function */
	NEXT = 8, FLAGS = 16, FD = 20, QUEUE_MODE = 28,
};

const char fake_runtime[] = "Level Zero";
static char drivers[DRIVERS], devices[DEVICES_MAX], cpu, context_mark, list_mark;
static unsigned contexts, lists;
static bool exportable;

#define API __attribute__((visibility("default")))

API result zeInit(uint32_t flags);
API result zeDriverGet(uint32_t *count, void **ret);
API result zeDeviceGet(void *driver, uint32_t *count, void **ret);
API result zeDeviceGetProperties(void *device, void *ret);
API result zeDevicePciGetPropertiesExt(void *device, void *ret);
API result zeContextCreate(void *driver, const void *desc, void **ret);
API result zeContextDestroy(void *context);
API result zeCommandListCreateImmediate(void *context, void *device, const void *desc, void **ret);
API result zeCommandListDestroy(void *list);
API result zeCommandListAppendMemoryCopy(void *list, void *to, const void *from, size_t bytes, void *signal,
					 uint32_t waits, void **events);
API result zeMemAllocDevice(void *context, const void *desc, size_t bytes, size_t alignment, void *device, void **ret);
API result zeMemFree(void *context, void *memory);
API result zeMemGetAllocProperties(void *context, const void *memory, void *ret, void **ret_device);

static uint32_t word(const void *structure, size_t at) {
	uint32_t w;

	memcpy(&w, (const char *) structure + at, sizeof(w));
	return w;
}

static void *next(const void *structure) {
	void *p;

	memcpy(&p, (const char *) structure + NEXT, sizeof(p));
	return p;
}

static bool is_gpu(const void *device) {
	return (const char *) device >= devices && (const char *) device < devices + fake_count();
}

result zeInit(uint32_t flags) {
	fake_called("zeInit");
	FAKE_REQUIRE(flags == 1, "zeInit() for something else than GPUs");
	fake_initialise();
	return fake_count() > 0 ? 0 : UNINITIALIZED;
}

result zeDriverGet(uint32_t *count, void **ret) {
	FAKE_REQUIRE(fake_initialised(), "zeDriverGet() before zeInit()");
	for (uint32_t i = 0; i < DRIVERS && i < *count; i++)
		ret[i] = &drivers[i];
	*count = DRIVERS;
	return 0;
}

result zeDeviceGet(void *driver, uint32_t *count, void **ret) {
	uint32_t n = driver == &drivers[0] ? 1 : (uint32_t) fake_count();

	FAKE_REQUIRE(driver == &drivers[0] || driver == &drivers[1], "devices of a driver that is none");
	for (uint32_t i = 0; i < n && i < *count; i++)
		ret[i] = driver == &drivers[0] ? &cpu : &devices[i];
	*count = n;
	return 0;
}

result zeDeviceGetProperties(void *device, void *ret) {
	uint32_t type = device == &cpu ? 2 : 1;

	FAKE_REQUIRE(word(ret, 0) == 0x3, "properties without their type");
	memcpy((char *) ret + PROPERTIES_TYPE, &type, sizeof(type));
	(void) snprintf((char *) ret + PROPERTIES_NAME, 256, "sim_ze%d",
			device == &cpu ? -1 : (int) ((char *) device - devices));
	return 0;
}

result zeDevicePciGetPropertiesExt(void *device, void *ret) {
	unsigned address[4];
	char text[16];

	FAKE_REQUIRE(is_gpu(device) && word(ret, 0) == 0x10008,
		     "an address of a device that is no GPU, or without its type");
	if (!fake_pci((int) ((char *) device - devices), text, sizeof(text)) ||
	    sscanf(text, "%x:%x:%x.%x", &address[0], &address[1], &address[2], &address[3]) != 4)
		return UNKNOWN;
	memcpy((char *) ret + PCI_ADDRESS, address, sizeof(address));
	return 0;
}

result zeContextCreate(void *driver, const void *desc, void **ret) {
	fake_called("zeContextCreate");
	FAKE_REQUIRE(driver == &drivers[1] && word(desc, 0) == 0xd,
		     "a context of a driver without GPUs, or without its type");
	contexts++;
	*ret = &context_mark;
	return 0;
}

result zeContextDestroy(void *context) {
	fake_called("zeContextDestroy");
	FAKE_REQUIRE(context == &context_mark && contexts > 0 && lists < contexts,
		     "destroyed a context that is none, or before its command list");
	FAKE_REQUIRE(contexts > 1 || fake_live() == 0, "destroyed the last context before its memory was freed");
	contexts--;
	return 0;
}

result zeCommandListCreateImmediate(void *context, void *device, const void *desc, void **ret) {
	fake_called("zeCommandListCreateImmediate");
	FAKE_REQUIRE(context == &context_mark && contexts > 0 && is_gpu(device),
		     "a command list without a context or a GPU");
	FAKE_REQUIRE(word(desc, 0) == 0xe && word(desc, QUEUE_MODE) == 1, "a command list that is not synchronous");
	lists++;
	*ret = &list_mark;
	return 0;
}

result zeCommandListDestroy(void *list) {
	fake_called("zeCommandListDestroy");
	FAKE_REQUIRE(list == &list_mark && lists > 0, "destroyed a command list that is none");
	lists--;
	return 0;
}

result zeCommandListAppendMemoryCopy(void *list, void *to, const void *from, size_t bytes, void *signal, uint32_t waits,
				     void **events) {
	/* The runtime finds out the direction by itself: so does this. */
	bool into = fake_is_gpu_memory(to);

	FAKE_REQUIRE(list == &list_mark && lists > 0 && !signal && waits == 0 && !events,
		     "a copy without a command list, or with events");
	return fake_copy(to, from, bytes, into) == FAKE_OK ? 0 : UNKNOWN;
}

result zeMemAllocDevice(void *context, const void *desc, size_t bytes, size_t alignment, void *device, void **ret) {
	const void *wish = next(desc);

	fake_called("zeMemAllocDevice");
	FAKE_REQUIRE(context == &context_mark && contexts > 0 && is_gpu(device), "memory without a context or a GPU");
	FAKE_REQUIRE(word(desc, 0) == 0x15 && alignment > 0 && (alignment & (alignment - 1)) == 0,
		     "memory without its type, or of no alignment");
	if (wish && (word(wish, 0) != 0x18 || word(wish, FLAGS) != 2 || !fake_can_export()))
		return INVALID_ARGUMENT;
	if (fake_alloc(bytes, ret) != FAKE_OK)
		return OUT_OF_DEVICE_MEMORY;
	fake_make_ready(*ret);
	exportable = wish != NULL;
	return 0;
}

result zeMemFree(void *context, void *memory) {
	fake_called("zeMemFree");
	FAKE_REQUIRE(context == &context_mark && contexts > 0, "freed without a context");
	fake_free(memory);
	return 0;
}

result zeMemGetAllocProperties(void *context, const void *memory, void *ret, void **ret_device) {
	void *wish = next(ret);
	int fd;

	fake_called("zeMemGetAllocProperties");
	FAKE_REQUIRE(context == &context_mark && word(ret, 0) == 0x17 && !ret_device, "properties without their type");
	if (!wish || word(wish, 0) != 0x1a || word(wish, FLAGS) != 2 || !exportable)
		return INVALID_ARGUMENT;
	fd = fake_export(memory, 1);
	memcpy((char *) wish + FD, &fd, sizeof(fd));
	return fd < 0 ? UNKNOWN : 0;
}
