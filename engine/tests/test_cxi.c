/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: what a job says of Slingshot and of atomics reaches the peer, and nothing else does;
 * a host's missing parts are named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "base/atomic_word.h"
#include "backends/backend.h"
#include "backends/cxi/cxi.h"
#include "base/message.h"
#include "cli/options.h"

static struct options options;

static int parse(const char *line) {
	static char words[512];
	char *argv[64] = { (char *) (uintptr_t) "perch" };
	int argc = 1;

	(void) snprintf(words, sizeof(words), "%s", line);
	for (char *save, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	failure_reset();
	return options_parse(argc, argv, &options);
}

static struct job chosen(enum op op) {
	struct job job;

	job_defaults(&job);
	job.kind = KIND_BANDWIDTH;
	(void) copy_string(job.backend, sizeof(job.backend), "cxi");
	(void) copy_string(job.device, sizeof(job.device), "cxi0");
	job.op = op;
	job.sizes[0] = 64;
	job.n_sizes = 1;
	job.iterations = 100;
	job.outstanding = 16;
	job.batch = 4;
	job.timeout_ns = NSEC_PER_SEC;
	job.cxi.svc_id = 5;
	job.cxi.server_svc_id = JOB_SVC_ID_MAX;
	job.cxi.vni = JOB_VNI_MAX;
	job.ofi.fabric_class = FABRIC_CLASS_NETWORK_CTRL;
	job.cxi.no_ll = true;
	return job;
}

static void round_trip(const struct job *job) {
	struct job copy;
	json_t *json;

	assert_int_equal(job_to_json(job, &json), 0);
	assert_int_equal(job_from_json(json, &copy), 0);
	assert_memory_equal(&copy, job, sizeof(copy));
	json_decref(json);
}

static void test_round_trip(void **state) {
	struct job job;

	(void) state;
	job = chosen(OP_SEND);
	job.cxi.rdzv = job.cxi.no_idc = true;
	round_trip(&job);
	job = chosen(OP_WRITE);
	job.cxi.unrestricted = job.cxi.no_hrp = job.cxi.no_idc = true;
	job.cxi.keys = KEYS_PROVIDER;
	round_trip(&job);
	job = chosen(OP_COMPARE_ATOMIC);
	job.atomic_op = ATOMIC_MSWAP;
	job.atomic_type = ATOMIC_UINT128;
	job.cxi.keys = KEYS_MATCHING;
	round_trip(&job);
}

static void refuse(const char *key, json_t *value, int error) {
	struct job job = chosen(OP_WRITE), copy;
	json_t *json;

	assert_int_equal(job_to_json(&job, &json), 0);
	assert_int_equal(json_object_set_new(json, key, value), 0);
	failure_reset();
	assert_int_equal(job_from_json(json, &copy), error);
	assert_true(failure_text()[0]);
	json_decref(json);
}

static void test_hostile_values(void **state) {
	(void) state;
	refuse("svc_id", json_integer(-2), -EINVAL);
	refuse("svc_id", json_integer((json_int_t) INT32_MAX + 1), -EBADMSG);
	refuse("server_svc_id", json_integer(INT32_MIN), -EINVAL);
	refuse("vni", json_integer(JOB_VNI_MAX + 1), -EINVAL);
	refuse("vni", json_integer(-2), -EINVAL);
	refuse("vni", json_string("10"), -EBADMSG);
	refuse("fabric_class", json_string("scavenger"), -EBADMSG);
	refuse("fabric_class", json_integer(1), -EBADMSG);
	refuse("keys", json_string("any"), -EBADMSG);
	refuse("no_idc", json_integer(1), -EBADMSG);
	refuse("rdzv", json_true(), -EINVAL); /* of a write */
	refuse("atomic_op", json_string("sum"), -EINVAL);
	refuse("atomic_op", json_string("div"), -EBADMSG);
	refuse("atomic_type", json_string("int8"), -EINVAL);
	refuse("atomic_type", json_string("bool"), -EBADMSG);
	refuse("backend", json_string("verbs"), -EINVAL);
}

static void refused(const char *line, const char *part) {
	int e = parse(line);

	if (e == 0)
		e = job_validate(&options.job);
	assert_true(e < 0);
	assert_int_equal(failure_code(), EXIT_USAGE);
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
}

static void test_options(void **state) {
	(void) state;
	assert_int_equal(parse("bw h --backend cxi --op write --svc-id 0 --server-svc-id 2147483647 --vni 65535 "
			       "--traffic-class bulk-data --no-idc --no-ll --unrestricted --no-hrp --keys matching "
			       "--batch 8"), 0);
	assert_int_equal(options.job.cxi.svc_id, 0);
	assert_int_equal(options.job.cxi.server_svc_id, JOB_SVC_ID_MAX);
	assert_int_equal(options.job.cxi.vni, JOB_VNI_MAX);
	assert_int_equal(options.job.ofi.fabric_class, FABRIC_CLASS_BULK_DATA);
	assert_int_equal(options.job.cxi.keys, KEYS_MATCHING);
	assert_true(options.job.cxi.no_idc && options.job.cxi.no_ll && options.job.cxi.unrestricted &&
		    options.job.cxi.no_hrp && !options.job.cxi.rdzv);
	assert_int_equal(job_validate(&options.job), 0);

	/* An atomic's size is one word, its operation the usual one of its kind. */
	assert_int_equal(parse("lat h --backend cxi --op atomic-op --atomic-type int16"), 0);
	assert_int_equal(options.job.sizes[0], 2);
	assert_int_equal(options.job.atomic_op, ATOMIC_SUM);
	assert_int_equal(parse("lat h --backend cxi --op compare-atomic --atomic-type double-complex"), 0);
	assert_int_equal(options.job.sizes[0], 16);
	assert_int_equal(options.job.atomic_op, ATOMIC_CSWAP);
	assert_int_equal(parse("serve --svc-id 7"), 0);
	assert_int_equal(options.job.cxi.svc_id, 7);

	refused("lat h --svc-id 1", "the tcp backend does not have it");
	refused("lat h --backend ofi --keys client", "--keys: the ofi backend does not have it");
	refused("lat h --backend cxi --vni 65536", "out of range");
	refused("lat h --backend cxi --svc-id 2147483648", "out of range");
	refused("lat h --backend cxi --traffic-class default", "best-effort");
	refused("lat h --backend cxi --tos low-latency", "0 to 255");
	refused("lat h --backend cxi --rdzv --op read", "has no rendezvous");
	refused("lat h --backend cxi --op fetch-atomic --atomic-op cswap", "--op fetch-atomic does not have it");
	refused("lat h --backend cxi --op atomic-op --atomic-op read", "--op atomic-op does not have it");
	refused("lat h --backend cxi --op fetch-atomic --atomic-op min --atomic-type float-complex", "not defined");
	refused("lat h --backend cxi --op fetch-atomic --atomic-type int128 --verify",
		"is checked for integers of up to 64 bits");
	refused("lat h --backend null --op atomic-op", "the null backend does not have it");
}

static void test_words(void **state) {
	const uint64_t minus_one = 0xff, big = 0x80;

	(void) state;
	/* 8 bits, signed and not */
	assert_int_equal(atomic_after(ATOMIC_INT8, ATOMIC_MIN, minus_one, 1, 0), minus_one);
	assert_int_equal(atomic_after(ATOMIC_UINT8, ATOMIC_MIN, minus_one, 1, 0), 1);
	assert_int_equal(atomic_after(ATOMIC_INT8, ATOMIC_MAX, big, 1, 0), 1);
	assert_int_equal(atomic_after(ATOMIC_UINT8, ATOMIC_MAX, big, 1, 0), big);
	assert_int_equal(atomic_after(ATOMIC_UINT8, ATOMIC_SUM, minus_one, 2, 0), 1);
	assert_int_equal(atomic_after(ATOMIC_INT8, ATOMIC_PROD, minus_one, minus_one, 0), 1);
	assert_true(atomic_after(ATOMIC_UINT64, ATOMIC_PROD, UINT64_MAX, UINT64_MAX, 0) == 1);
	assert_true(atomic_after(ATOMIC_UINT64, ATOMIC_SUM, UINT64_MAX, 1, 0) == 0);
	assert_int_equal(atomic_after(ATOMIC_INT32, ATOMIC_LOR, 0, 4, 0), 1);
	assert_int_equal(atomic_after(ATOMIC_INT32, ATOMIC_LAND, 2, 4, 0), 1);
	assert_int_equal(atomic_after(ATOMIC_INT32, ATOMIC_LXOR, 2, 4, 0), 0);
	assert_int_equal(atomic_after(ATOMIC_INT32, ATOMIC_BOR, 2, 4, 0), 6);
	assert_int_equal(atomic_after(ATOMIC_INT32, ATOMIC_BAND, 6, 4, 0), 4);
	assert_int_equal(atomic_after(ATOMIC_INT32, ATOMIC_BXOR, 6, 4, 0), 2);
	assert_int_equal(atomic_after(ATOMIC_INT32, ATOMIC_READ, 6, 4, 0), 6);
	assert_int_equal(atomic_after(ATOMIC_INT32, ATOMIC_WRITE, 6, 4, 0), 4);
	/* The comparison is of `compare` with the target (fi_atomic(3)). */
	assert_int_equal(atomic_after(ATOMIC_INT16, ATOMIC_CSWAP, 5, 9, 5), 9);
	assert_int_equal(atomic_after(ATOMIC_INT16, ATOMIC_CSWAP_NE, 5, 9, 5), 5);
	assert_int_equal(atomic_after(ATOMIC_INT16, ATOMIC_CSWAP_LE, 5, 9, 5), 9);
	assert_int_equal(atomic_after(ATOMIC_INT16, ATOMIC_CSWAP_LT, 5, 9, 4), 9);
	assert_int_equal(atomic_after(ATOMIC_INT16, ATOMIC_CSWAP_LT, 5, 9, 5), 5);
	assert_int_equal(atomic_after(ATOMIC_INT16, ATOMIC_CSWAP_GE, 5, 9, 4), 5);
	assert_int_equal(atomic_after(ATOMIC_INT16, ATOMIC_CSWAP_GT, 5, 9, 6), 9);
	assert_int_equal(atomic_after(ATOMIC_UINT16, ATOMIC_MSWAP, 0xff00, 0x1234, 0x0ff0), 0xf230);
	assert_int_equal(atomic_after(ATOMIC_FLOAT, ATOMIC_SUM, 0x3f800000, 0x40000000, 0), 0x40400000);
	assert_true(atomic_bits(ATOMIC_DOUBLE, 1) == 0x3ff0000000000000 &&
		    atomic_bits(ATOMIC_DOUBLE_COMPLEX, 1) == 0x3ff0000000000000);
	assert_int_equal(atomic_bits(ATOMIC_FLOAT_COMPLEX, 2), 0x40000000);
	assert_int_equal(atomic_bits(ATOMIC_INT128, 3), 3);
	assert_false(atomic_type_has(ATOMIC_FLOAT, ATOMIC_MSWAP) || atomic_type_has(ATOMIC_FLOAT_COMPLEX, ATOMIC_MIN));
	assert_int_equal(atomic_op_from_name("none"), -EINVAL);
}

/* A tree with the files of a host, made one after the other. */
static void make(const char *root, const char *path, const char *text) {
	char whole[256];

	(void) snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *p = strchr(whole + strlen(root) + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void) mkdir(whole, 0755);
		*p = '/';
	}
	if (!text) {
		(void) mkdir(whole, 0755);
		return;
	}
	FILE *f = fopen(whole, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static void missing(const char *root, bool provider, bool library, const char *part, const char *not_part) {
	char text[CXI_MISSING_MAX];
	struct cxi_host host;

	cxi_host_look(root, &host);
	host.provider = provider;
	host.library = library;
	cxi_host_missing(&host, text);
	if (!strstr(text, part) || (not_part && strstr(text, not_part)))
		fail_msg("'%s': it should say '%s', and not '%s'", text, part, not_part ? not_part : "");
}

static void test_missing_parts(void **state) {
	char root[] = "/tmp/perch-cxi-XXXXXX", command[64];

	(void) state;
	assert_non_null(mkdtemp(root));
	missing(root, false, false, "no Slingshot NIC", "driver");
	missing(root, false, false, "no libcxi.so.1", NULL);
	missing(root, false, true, "has no cxi provider", "no libcxi");
	make(root, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x8086\n");
	make(root, "sys/bus/pci/devices/0000:01:00.0/device", "0x0501\n");
	missing(root, true, true, "no Slingshot NIC", "provider");
	make(root, "sys/bus/pci/devices/0000:02:00.0/vendor", "0x17db\n");
	make(root, "sys/bus/pci/devices/0000:02:00.0/device", "0x0501\n");
	missing(root, true, true, "no driver: /sys/class/cxi is empty", "NIC");
	make(root, "sys/class/cxi/cxi1", NULL);
	make(root, "sys/class/cxi/cxi0", NULL);
	missing(root, true, true, "no device file /dev/cxi0 (modprobe cxi_user)", "driver:");
	make(root, "dev/cxi0", "");
	missing(root, true, true, "no enabled service for this user", "modprobe");
	(void) snprintf(command, sizeof(command), "%s/dev/cxi0", root);
	assert_int_equal(chmod(command, 0), 0);
	if (geteuid() != 0)
		missing(root, true, true, "no permission on /dev/cxi0", NULL);
	(void) snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_hostile_values),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_missing_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
