/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPU is nearest to a network device, over a composed tree of sysfs and test doubles of the makers' runtimes
 * (doubles/fake_gpu.h). None of this was tried on a GPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "doubles.h"
#include "memory/gpu.h"
#include "base/message.h"
#include "shell.h"

/*
 * Socket 0: root pci0000:16 has a switch with two NICs and two GPUs, and a GPU at a port of its own.
 * Socket 1: root pci0000:80 has a NIC, and pci0000:a0 has a GPU.
 */
#define SWITCH "sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0"
#define GPUS "0000:31:00.0,0000:A1:00.0,0000:1B:00.0,0000:1A:00.0"

enum { GPU_ROOT, GPU_FAR, GPU_SWITCH_B, GPU_SWITCH_A };

static char root[] = "/tmp/perch-gpu-near.XXXXXX";

static void put(const char *bridges, const char *address, int node) {
	shell("cd %s && mkdir -p %s/%s sys/bus/pci/devices && echo %d >%s/%s/numa_node && "
	      "ln -s %s/%s/%s sys/bus/pci/devices/%s", root, bridges, address, node, bridges, address, root, bridges,
	      address, address);
}

static void put_nic(const char *name, const char *bridges, const char *address, int node) {
	put(bridges, address, node);
	shell("cd %s && mkdir -p sys/class/infiniband/%s && ln -s %s/%s/%s sys/class/infiniband/%s/device", root, name,
	      root, bridges, address, name);
}

static int make_host(void **state) {
	(void) state;
	if (!mkdtemp(root))
		return -1;
	put_nic("mlx5_0", SWITCH "/0000:18:00.0", "0000:19:00.0", 0);
	put_nic("mlx5_1", SWITCH "/0000:18:01.0", "0000:1c:00.0", 0);
	put(SWITCH "/0000:18:02.0", "0000:1a:00.0", 0);
	put(SWITCH "/0000:18:03.0", "0000:1b:00.0", 0);
	put("sys/devices/pci0000:16/0000:16:02.0", "0000:31:00.0", 0);
	put_nic("mlx5_2", "sys/devices/pci0000:80/0000:80:01.0", "0000:81:00.0", 1);
	put("sys/devices/pci0000:a0/0000:a0:01.0", "0000:a1:00.0", 1);
	put_nic("mlx5_3", "sys/devices/pci0000:16/0000:16:03.0", "0000:41:00.0", 0);
	shell("mkdir -p %s/sys/class/infiniband/rxe0 && echo lo >%s/sys/class/infiniband/rxe0/parent", root, root);
	return 0;
}

static int remove_host(void **state) {
	(void) state;
	shell("rm -rf %s", root);
	return 0;
}

static int reset(void **state) {
	(void) state;
	doubles_reset();
	failure_reset();
	(void) setenv("PERCH_FAKE_GPU_COUNT", "4", 1);
	(void) setenv("PERCH_FAKE_GPU_PCI", GPUS, 1);
	return 0;
}

static char devices[8][JOB_NAME_MAX];

/* Names of devices of one host, until NULL; the last one's is chosen. */
static struct gpu_seat seat_of(const char *first, ...) {
	struct gpu_seat seat = { .devices = devices, .slots = 1 };
	const char *name = first;
	unsigned n = 0;
	va_list ap;

	va_start(ap, first);
	for (; name; name = va_arg(ap, const char *))
		(void) copy_string(devices[n++], sizeof(devices[0]), name);
	va_end(ap);
	seat.own = n - 1;
	return seat;
}

static uint32_t chosen(enum memory_type type, struct gpu_seat seat) {
	const struct memory_kind kind = { .type = type, .near = true };
	struct memory_kind found = { .near = true };

	assert_int_equal(gpu_find_in(root, &kind, &seat, &found), 0);
	assert_int_equal(found.type, type);
	assert_false(found.near);
	return found.ordinal;
}

static void test_the_nearest_shares_most_of_the_way(void **state) {
	static const enum memory_type types[] = { MEMORY_CUDA, MEMORY_ROCM, MEMORY_ZE };

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		/* Below one switch, by number; not the one at another port of the root. */
		assert_int_equal(chosen(types[i], seat_of("mlx5_0", NULL)), GPU_SWITCH_B);
		/* No root is shared: the same NUMA node. */
		assert_int_equal(chosen(types[i], seat_of("mlx5_2", NULL)), GPU_FAR);
		/* At a port of its own, all three GPUs of its root are equally far. */
		assert_int_equal(chosen(types[i], seat_of("mlx5_3", NULL)), GPU_ROOT);
	}
}

/* Two NICs below one switch have a GPU each, and so have two lanes, or two commands, of one NIC. */
static void test_equally_near_ones_are_shared_out(void **state) {
	struct gpu_seat seat;

	(void) state;
	assert_int_equal(chosen(MEMORY_CUDA, seat_of("mlx5_0", "mlx5_1", NULL)), GPU_SWITCH_A);
	assert_int_equal(chosen(MEMORY_CUDA, seat_of("mlx5_0", "mlx5_0", NULL)), GPU_SWITCH_A);
	assert_int_equal(chosen(MEMORY_CUDA, seat_of("mlx5_0", "mlx5_1", "mlx5_0", NULL)), GPU_SWITCH_B);
	/* A NIC elsewhere takes none of these. */
	assert_int_equal(chosen(MEMORY_CUDA, seat_of("mlx5_2", "mlx5_1", NULL)), GPU_SWITCH_B);
	seat = seat_of("mlx5_0", NULL);
	seat.slots = 2;
	seat.slot = 1;
	assert_int_equal(chosen(MEMORY_CUDA, seat), GPU_SWITCH_A);
}

/* A software device lies on no bus: no GPU is nearer than another. */
static void test_devices_on_no_bus_take_turns(void **state) {
	(void) state;
	assert_int_equal(chosen(MEMORY_CUDA, seat_of("rxe0", NULL)), 0);
	assert_int_equal(chosen(MEMORY_CUDA, seat_of("rxe0", "rxe0", "", NULL)), 2);
}

static void test_addresses(void **state) {
	static const enum memory_type types[] = { MEMORY_CUDA, MEMORY_ROCM, MEMORY_ZE };

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		struct memory_kind kind = { .type = types[i] }, found;
		struct gpu_seat seat = seat_of("mlx5_0", NULL);
		struct gpu *g;

		(void) copy_string(kind.address, sizeof(kind.address), "0000:31:00.0");
		assert_int_equal(gpu_find_in(root, &kind, &seat, &found), 0);
		assert_int_equal(found.ordinal, GPU_ROOT);
		assert_int_equal(gpu_open(&found, &g), 0);
		assert_string_equal(g->address, "0000:31:00.0");
		assert_null(gpu_close(g));
		failure_reset();
		(void) copy_string(kind.address, sizeof(kind.address), "0000:32:00.0");
		assert_int_equal(gpu_find_in(root, &kind, &seat, &found), -ENODEV);
		assert_int_equal(failure_code(), EXIT_HOST);
		assert_non_null(strstr(failure_text(), "0000:32:00.0: this host has no"));
		assert_non_null(strstr(failure_text(),
				       "it has 0000:31:00.0, 0000:a1:00.0, 0000:1b:00.0, 0000:1a:00.0"));
		failure_reset();
		assert_int_equal(gpu_open(&kind, &g), -EINVAL);
		assert_int_equal(failure_code(), EXIT_INTERNAL);
		failure_reset();
	}
}

static void test_unknown_addresses_are_not_near(void **state) {
	struct memory_kind kind = { .type = MEMORY_ROCM, .near = true }, found;
	struct gpu_seat seat = seat_of("mlx5_0", NULL);

	(void) state;
	(void) setenv("PERCH_FAKE_GPU_PCI", "0000:1b:00.0,-,-,-", 1);
	assert_int_equal(gpu_find_in(root, &kind, &seat, &found), -EOPNOTSUPP);
	assert_int_equal(failure_code(), EXIT_HOST);
	assert_non_null(strstr(failure_text(), "rocm:near: the runtime does not say where rocm:1 is"));
	failure_reset();
	(void) setenv("PERCH_FAKE_GPU_COUNT", "0", 1);
	assert_int_equal(gpu_find_in(root, &kind, &seat, &found), -ENODEV);
	assert_int_equal(failure_code(), EXIT_HOST);
	assert_non_null(strstr(failure_text(), "finds no AMD GPU on this host"));
}

static void drive(const char *address, const char *class, const char *vendor, const char *driver) {
	shell("cd %s/sys/bus/pci/devices/%s && echo %s >class && echo %s >vendor && mkdir -p %s/sys/bus/pci/drivers/%s "
	      "&& ln -s %s/sys/bus/pci/drivers/%s driver", root, address, class, vendor, root, driver, root, driver);
}

/* What the kernel shows, with no runtime: those that a driver for computing holds. */
static void test_gpus_of_a_host_are_listed_the_nearest_first(void **state) {
	static const char *const wanted[] = { "0000:1b:00.0", "0000:31:00.0", "0000:a1:00.0" };
	struct gpu_found found[GPUS_MAX];

	(void) state;
	assert_int_equal(gpu_list(root, "mlx5_0", found), 0);
	drive("0000:19:00.0", "0x020000", "0x15b3", "mlx5_core");
	drive("0000:1a:00.0", "0x030200", "0x10de", "vfio-pci");
	drive("0000:1b:00.0", "0x030200", "0x10de", "nvidia");
	drive("0000:31:00.0", "0x120000", "0x1002", "amdgpu");
	drive("0000:a1:00.0", "0x038000", "0x8086", "xe");
	assert_int_equal(gpu_list(root, "mlx5_0", found), ELEMENTSOF(wanted));
	for (size_t i = 0; i < ELEMENTSOF(wanted); i++)
		assert_string_equal(found[i].address, wanted[i]);
	assert_string_equal(found[0].kind, "cuda");
	assert_string_equal(found[1].kind, "rocm");
	assert_string_equal(found[2].kind, "ze");
	assert_int_equal(gpu_list(root, "mlx5_2", found), ELEMENTSOF(wanted));
	assert_string_equal(found[0].address, "0000:a1:00.0");
}

/* A number needs no runtime to be looked up, and host memory none at all. */
static void test_other_memory_stays(void **state) {
	const struct memory_kind kinds[] = { { .type = MEMORY_HOST }, { .type = MEMORY_CUDA, .ordinal = 9 } };
	struct gpu_seat seat = seat_of("mlx5_0", NULL);

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		struct memory_kind found;

		assert_int_equal(gpu_find_in(root, &kinds[i], &seat, &found), 0);
		assert_true(memory_kind_equal(&found, &kinds[i]));
	}
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_nearest_shares_most_of_the_way, reset),
		cmocka_unit_test_setup(test_equally_near_ones_are_shared_out, reset),
		cmocka_unit_test_setup(test_devices_on_no_bus_take_turns, reset),
		cmocka_unit_test_setup(test_addresses, reset),
		cmocka_unit_test_setup(test_unknown_addresses_are_not_near, reset),
		cmocka_unit_test_setup(test_other_memory_stays, reset),
		cmocka_unit_test_setup(test_gpus_of_a_host_are_listed_the_nearest_first, reset),
	};

	(void) argc;
	doubles_find(argv);
	return cmocka_run_group_tests_name("the nearest GPU, on test doubles that prove nothing about GPUs", tests,
					   make_host, remove_host);
}
