/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: `perch check` says of a command what its records will say, leaves open what only a host can tell,
 * and refuses what the client would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/check.h"
#include "command_line.h"

/* `words`: what follows "perch check". */
static json_t *checked(const char *words) {
	char line[1024];

	(void) snprintf(line, sizeof(line), "perch check %s", words);
	assert_int_equal(parse_line(line), 0);
	assert_int_equal(options.command, COMMAND_CHECK);
	if (options_validate(&options) < 0)
		fail_msg("%s: %s", words, failure_text());
	return check_json(&options);
}

/* Every key of `expected` has that value, in objects in objects, too; lists are equal as a whole. */
static bool is_part(const json_t *expected, const json_t *whole) {
	const char *key;
	json_t *value;

	if (!json_is_object(expected))
		return json_equal((json_t *) (uintptr_t) expected, (json_t *) (uintptr_t) whole);
	json_object_foreach((json_t *) (uintptr_t) expected, key, value)
		if (!is_part(value, json_object_get(whole, key)))
			return false;
	return true;
}

/* `expected` is JSON with ' for ". */
static void says(const char *words, const char *expected) {
	char text[2048];
	json_t *check = checked(words), *part;
	char *whole;

	assert_int_equal(copy_string(text, sizeof(text), expected), 0);
	for (char *p = text; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	part = json_loads(text, 0, NULL);
	assert_non_null(part);
	whole = json_dumps(check, JSON_COMPACT);
	if (!is_part(part, check))
		fail_msg("%s: no %s in %s", words, text, whole);
	free(whole);
	json_decref(part);
	json_decref(check);
}

/* Keys of params, or of the whole, that are for a host to say. */
static void leaves_open(const char *words, const char *key) {
	json_t *check = checked(words);

	if (json_object_get(check, key) || json_object_get(json_object_get(check, "params"), key))
		fail_msg("%s: %s is said, and nobody can know it", words, key);
	json_decref(check);
}

static void refused(const char *words, const char *part) {
	char line[1024];

	(void) snprintf(line, sizeof(line), "perch check %s", words);
	if (parse_line(line) == 0)
		assert_true(options_validate(&options) < 0);
	assert_int_equal(failure_code(), EXIT_USAGE);
	if (!strstr(failure_text(), part))
		fail_msg("%s: '%s' does not say '%s'", words, failure_text(), part);
}

static void test_defaults_are_resolved(void **state) {
	(void) state;
	says("lat h", "{'schema': 'perch.check/1', 'subcommand': 'lat', 'backend': 'tcp', 'op': 'send',"
	     " 'kind': 'latency', 'limits': {}, 'soak': null, 'timeout_s': 30.0, 'interval_s': null, 'cpu': null,"
	     " 'server_numa': null, 'rails': null,"
	     " 'params': {'sizes': [8], 'iterations': 1000, 'duration_s': null, 'warmup': null, 'warmup_s': 0.2,"
	     " 'outstanding': 1,"
	     " 'queue_pairs': 1, 'batch': 1, 'threads': 1, 'devices': 1, 'completion': 'busy', 'memory': 'host',"
	     " 'clock': 'monotonic', 'rate': null, 'verify': false}}");
	says("bw h", "{'kind': 'bandwidth', 'params': {'sizes': [65536], 'iterations': 5000, 'outstanding': 64}}");
	says("transfer h", "{'kind': 'transfer', 'op': 'write', 'params': {'sizes': [65536], 'batches': [1],"
	     " 'iterations': 100, 'warmup': null, 'warmup_s': 0.2, 'outstanding': 512, 'threads': 1,"
	     " 'devices': 1, 'session': true,"
	     " 'buffer_bytes': 65536, 'cross_rail': 0}}");
	says("bw h --op read --backend verbs", "{'connection': 'RC', 'params': {'sl': 0, 'traffic_class': 0,"
	     " 'retry': 7, 'rnr_retry': 7, 'timeout_exponent': 14, 'srq': false, 'rdma_cm': false}}");
}

static void test_what_is_asked_for(void **state) {
	(void) state;
	says("lat h --size 8:64 --duration 300ms --gap 10 --completion event --verify --max-p99 12.5 --interval 100ms "
	     "--timeout 1m --cpu 3,5 --server-numa 1 --rails a,b --slot 2/3 --barrier",
	     "{'params': {'sizes': [8, 16, 32, 64], 'duration_s': 0.3,"
	     " 'iterations': null, 'gap_us': 10.0, 'completion': 'event', 'verify': true},"
	     " 'limits': {'max_p99_us': 12.5}, 'interval_s': 0.1, 'timeout_s': 60.0, 'cpu': '3,5',"
	     " 'server_numa': '1', 'rails': 'a,b', 'server_rails': null,"
	     " 'slot': '2/3', 'server_slot': null, 'barrier': true}");
	says("bw h --rate 500Mb/s --bidirectional --min-gbit 2",
	     "{'params': {'rate': {'asked': 0.5, 'unit': 'Gb/s'}, 'bidirectional': true},"
	     " 'limits': {'min_gbit_s': 2.0}}");
	says("bw h --backend verbs --connection uc --mtu 1024 --gid-index 3 --ib-port 2 --server-ib-port 1 --inline 0"
	     " --queue-pairs 4 --batch 2 --device a --server-device b --huge 2M",
	     "{'connection': 'UC', 'client': {'device': 'a'}, 'server': {'device': 'b'}, 'params': {'mtu_bytes': 1024,"
	     " 'gid_index': 3, 'ib_port': 2, 'server_ib_port': 1, 'inline_bytes': 0, 'queue_pairs': 4, 'batch': 2,"
	     " 'retry': null, 'memory': 'huge:2M', 'huge': 2097152}}");
	says("bw h --backend cxi --op write --svc-id 5 --vni 7 --no-hrp --traffic-class low-latency --keys matching",
	     "{'client': {'svc_id': 5, 'vni': 7}, 'server': {'vni': 7}, 'params': {'svc_id': 5, 'server_svc_id': null,"
	     " 'vni': 7, 'hrp': false, 'fabric_class': 'low-latency', 'keys': 'matching', 'rdzv': false}}");
	says("transfer h --backend cxi --svc-id 5 --server-svc-id 6 --vni 7 --devices a,b --server-devices c,d",
	     "{'client': {'svc_id': 5, 'vni': 7}, 'server': {'svc_id': 6, 'vni': 7}, 'params': {'svc_id': 5, "
	     "'server_svc_id': 6, 'devices': 2}}");
	says("lat h --backend ofi --provider shm --op fetch-atomic --atomic-type int32",
	     "{'provider': 'shm', 'params': {'atomic_op': 'sum', 'atomic_type': 'int32', 'sizes': [4]}}");
	says("lat h --backend verbs --rdma-cm --sl 0 --tos 40",
	     "{'params': {'sl': 0, 'traffic_class': 40, 'rdma_cm': true}}");
	says("lat h --json --soak f --duration 2m --stall 50ms",
	     "{'interval_s': 60.0, 'soak': {'stall_s': 0.05, 'reconnect_s': 1800.0}}");
}

static void test_what_only_a_host_can_tell_has_no_key(void **state) {
	static const char *const of_devices[] = { "gid_index", "pkey", "ib_port", "server_ib_port", "mtu_bytes",
						  "inline_bytes", "provider", "size_bytes" };
	static const char *const of_cassini[] = { "idc", "ll", "hrp", "unrestricted", "inline_bytes" };

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(of_devices); i++)
		leaves_open("lat h --backend verbs", of_devices[i]);
	leaves_open("lat h --backend verbs --pkey 0x8001", "pkey"); /* some ports are limited members */
	for (size_t i = 0; i < ELEMENTSOF(of_cassini); i++)
		leaves_open("lat h --backend cxi --op write", of_cassini[i]);
	leaves_open("lat h --backend verbs --rdma-cm --mtu 1024", "mtu_bytes");
	leaves_open("lat h --backend verbs --rdma-cm --sl 3", "traffic_class");
	leaves_open("lat h --backend verbs --rdma-cm --tos 40", "sl");
	leaves_open("lat h --backend cxi --rdzv", "rdzv_from_bytes");
	leaves_open("lat h", "connection");
	leaves_open("transfer h", "chunks");
}

static void test_definitions(void **state) {
	(void) state;
	says("lat h", "{'definition': 'half_round_trip'}");
	says("lat h --backend null --op write", "{'definition': 'half_round_trip'}");
	says("lat h --backend ofi --op read", "{'definition': 'completion'}");
	says("lat h --backend ofi --op write --definition half_round_trip", "{'definition': 'half_round_trip'}");
	says("lat h --backend verbs --op write", "{'definition': 'half_round_trip'}");
	says("lat h --backend verbs --op write --completion event", "{'definition': 'completion'}");
	says("lat h --backend verbs --op write --relaxed-ordering on", "{'definition': 'completion'}");
	says("lat h --backend verbs --op write --memory cuda", "{'definition': 'completion'}");
	says("bw h", "{'definition': 'receiver_acknowledged'}");
	says("bw h --backend ofi --op write", "{'definition': 'initiator_completion'}");
	says("transfer h", "{'definition': 'batch_completion'}");
	leaves_open("lat h --backend ofi --op write", "definition");
	leaves_open("lat h --backend cxi --op write", "definition");
}

static void test_every_line_that_is_owed(void **state) {
	(void) state;
	says("lat h --size 8:32",
	     "{'expect': [{'kind': 'latency', 'size_bytes': 8}, {'kind': 'latency', 'size_bytes': 16},"
	     " {'kind': 'latency', 'size_bytes': 32}]}");
	says("bw h --size 100:300:100",
	     "{'expect': [{'kind': 'bandwidth', 'size_bytes': 100}, {'kind': 'bandwidth', 'size_bytes': 200},"
	     " {'kind': 'bandwidth', 'size_bytes': 300}]}");
	says("transfer h --size 1000 --batch 2 --chunk 300 --duration 1s", "{'expect': [{'kind': 'transfer',"
	     " 'size_bytes': 1000, 'batch': 2, 'chunk_bytes': 300, 'chunks': 4, 'pair': 0, 'asked': null, 'client': {},"
	     " 'server': {}}, {'kind': 'sum', 'size_bytes': 1000, 'batch': 2, 'chunk_bytes': 300, 'chunks': 4,"
	     " 'pair': null, 'asked': null}]}");
}

/* Device i works with the peer's i + 1; four threads are two lanes of each pair. */
static void test_lines_of_two_pairs(void **state) {
	(void) state;
	says("transfer h --backend verbs --devices a,b --server-devices c,d --cross-rail 1 --threads 4 --size 64 "
	     "--batch 8:16 --iterations 10", "{'client': {'device': 'a,b'}, 'server': {'device': 'd,c'},"
	     " 'params': {'threads': 4, 'devices': 2, 'cross_rail': 1, 'batches': [8, 16]},"
	     " 'expect': [{'kind': 'transfer', 'size_bytes': 64, 'batch': 8, 'chunk_bytes': null, 'chunks': 1,"
	     " 'pair': 0, 'asked': 160, 'client': {'device': 'a'},"
	     " 'server': {'device': 'd'}},"
	     "{'kind': 'transfer', 'size_bytes': 64, 'batch': 8, 'chunk_bytes': null, 'chunks': 1, 'pair': 1,"
	     " 'asked': 160, 'client': {'device': 'b'},"
	     " 'server': {'device': 'c'}},"
	     "{'kind': 'sum', 'size_bytes': 64, 'batch': 8, 'chunk_bytes': null, 'chunks': 1, 'pair': null,"
	     " 'asked': 320},"
	     "{'kind': 'transfer', 'size_bytes': 64, 'batch': 16, 'chunk_bytes': null, 'chunks': 1, 'pair': 0,"
	     " 'asked': 320, 'client': {'device': 'a'},"
	     " 'server': {'device': 'd'}},"
	     "{'kind': 'transfer', 'size_bytes': 64, 'batch': 16, 'chunk_bytes': null, 'chunks': 1, 'pair': 1,"
	     " 'asked': 320, 'client': {'device': 'b'},"
	     " 'server': {'device': 'c'}},"
	     "{'kind': 'sum', 'size_bytes': 64, 'batch': 16, 'chunk_bytes': null, 'chunks': 1, 'pair': null,"
	     " 'asked': 640}]}");
}

/* Whatever this program was built with. */
static void test_every_backend_is_refused_what_it_does_not_have(void **state) {
	static const char *const slots[] = { "0/2", "3/2", "1", "1/0", "1/1025", "a/b", "1/2/3" };

	(void) state;
	refused("lat h --backend nosuch", "--backend 'nosuch' is not understood; give tcp, verbs, ofi, cxi or null");
	refused("lat h --backend tcp --op write",
		"--op write: the tcp backend does not have it; give --backend verbs, ofi or cxi");
	refused("lat h -d mlx5_0", "has no devices to choose from; give --backend verbs, ofi or cxi");
	refused("transfer h -d mlx5_0", "--device mlx5_0: the tcp backend has no devices to choose from; give");
	refused("bw h --rails a,,b", "--rails 'a,,b': entry 2 of 3 is not a device's name");
	for (size_t i = 0; i < ELEMENTSOF(slots); i++) {
		char words[64];

		(void) snprintf(words, sizeof(words), "lat h --server-slot %s", slots[i]);
		refused(words, "K/N, K from 1 to N, N up to 1024");
	}
	refused("lat h --server-rails a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "names 17 devices; 16 at most");
	refused("transfer h --server-devices a,b", "--server-devices a,b: the tcp backend has no devices");
	refused("bw h --backend ofi --op send-imm", "--op send-imm: the ofi backend does not have it");
	refused("bw h --backend verbs --svc-id 1", "--svc-id: the verbs backend does not have it");
	refused("bw h --backend cxi --provider cxi", "the cxi backend has no providers");
	refused("lat h --backend null --completion event", "the null backend cannot sleep");
	refused("lat h --backend null --memory cuda", "host memory and huge pages only");
	refused("bw h --backend tcp --memory cuda", "--bounce lets each message be copied");
	refused("transfer h --backend tcp --memory cuda", "host memory only; give --backend verbs, ofi or cxi");
	refused("transfer h --backend null", "--backend null has no transfers");
	refused("transfer h --op send", "--op send is no transfer");
	refused("rate h --backend null", "--backend null has no message rate");
	refused("rate h --op send-imm", "perch rate measures send, write or read");
	refused("rate h --backend verbs --bounce", "perch rate has no option --bounce");
	refused("transfer h --devices a,b --server-devices c,d", "the tcp backend has no devices");
	refused("transfer h --backend ofi --devices a,b", "--devices names 2 devices and --server-devices none");
	refused("lat h --backend verbs --op fetch-add --size 16", "works on one word; use --size 8");
	refused("lat h --backend verbs --connection uc --rdma-cm", "reliable connections only");
	refused("lat h --backend verbs --op write --definition half_round_trip --completion event",
		"cannot be polled while sleeping");
	refused("lat h --backend verbs --op write --definition half_round_trip --relaxed-ordering on",
		"visible before the others");
	refused("lat h --max-p99 5 --iterations 10", "a p99 needs 1000 samples");
}

static void test_only_what_measures_is_checked(void **state) {
	(void) state;
	refused_line("perch check", "needs lat, bw, transfer or rate");
	refused_line("perch check serve", "needs lat, bw, transfer or rate");
	refused_line("perch check hist --quantiles 0.5", "perch check has no option --quantiles");
	refused_line("perch check lat", "perch lat needs the host");
	refused_line("perch check lat a b", "'b' is a second operand");
	refused_line("perch check lat h --frobnicate", "unknown option '--frobnicate'; 'perch lat --help-all'");
}

static void test_it_is_the_job_that_the_client_would_send(void **state) {
	static const char *const lines[] = {
		"lat h --size 8:4K --verify", "bw h --backend verbs --queue-pairs 8 --rdma-cm",
		"transfer h --backend ofi --devices a,b --server-devices c,d",
	};
	json_t *as_checked, *as_sent;
	char line[256];

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
		json_decref(checked(lines[i]));
		assert_int_equal(job_to_json(&options.job, &as_checked), 0);
		(void) snprintf(line, sizeof(line), "perch %s", lines[i]);
		assert_int_equal(parse_line(line), 0);
		assert_int_equal(job_to_json(&options.job, &as_sent), 0);
		assert_true(json_equal(as_checked, as_sent));
		json_decref(as_checked);
		json_decref(as_sent);
	}
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults_are_resolved),
		cmocka_unit_test(test_what_is_asked_for),
		cmocka_unit_test(test_what_only_a_host_can_tell_has_no_key),
		cmocka_unit_test(test_definitions),
		cmocka_unit_test(test_every_line_that_is_owed),
		cmocka_unit_test(test_lines_of_two_pairs),
		cmocka_unit_test(test_every_backend_is_refused_what_it_does_not_have),
		cmocka_unit_test(test_only_what_measures_is_checked),
		cmocka_unit_test(test_it_is_the_job_that_the_client_would_send),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
