/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include <stdio.h>
#include <sys/stat.h>

void host_name(char *ret, size_t size) {
	if (gethostname(ret, size) < 0)
		(void) snprintf(ret, size, "unknown");
	ret[size - 1] = '\0';
}

void machine_identity(char ret[MACHINE_MAX]) {
	char boot[64] = "", pids[64] = "";
	struct stat shm = { 0 };
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	ssize_t n;

	if (f) {
		if (!fgets(boot, sizeof(boot), f))
			boot[0] = '\0';
		boot[strcspn(boot, "\n")] = '\0';
		(void) fclose(f);
	}
	n = readlink("/proc/self/ns/pid", pids, sizeof(pids) - 1);
	pids[MAX(n, 0)] = '\0';
	(void) stat("/dev/shm", &shm);
	(void) snprintf(ret, MACHINE_MAX, "%s %s %llx.%llx", boot, pids, (unsigned long long) shm.st_dev, (unsigned long long) shm.st_ino);
}

static void to_hex(const uint8_t *bytes, size_t n, char *ret) {
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*ret++ = digits[bytes[i] >> 4];
		*ret++ = digits[bytes[i] & 15];
	}
	*ret = '\0';
}

static int digit(char c) {
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int from_hex(const char *text, struct address *ret) {
	size_t n = strlen(text);

	if (n % 2 || n / 2 > ADDRESS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < n / 2; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EBADMSG;
		ret->bytes[i] = (uint8_t) (high << 4 | low);
	}
	ret->length = n / 2;
	return 0;
}

static int say_address(struct run *r) {
	const struct session *s = r->session;
	char hex[2 * ADDRESS_MAX + 1], host[256];
	struct address a = { 0 };
	int e;

	e = r->backend->local_address(r->session, &a);
	if (e < 0)
		return e;
	to_hex(a.bytes, a.length, hex);
	host_name(host, sizeof(host));
	return control_send(r->control, FRAME_ADDRESS,
			    json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:I}", "address", hex, "host", host, "device", s->device, "shown", s->address,
				      "can_notify", s->can_notify, "driver", s->driver, "ib_port", (json_int_t) s->ib_port));
}

static int hear_address(struct run *r, struct address *ret, struct peer *ret_peer) {
	const char *hex, *host, *device, *shown, *driver = "";
	json_int_t ib_port = 0;
	json_t *payload = NULL;
	int e, notify;

	e = control_expect(r->control, FRAME_ADDRESS, r->job->timeout_ns, &payload);
	if (e < 0)
		return e;
	e = json_unpack(payload, "{s:s, s:s, s:s, s:s, s:b, s?s, s?I!}", "address", &hex, "host", &host, "device", &device, "shown", &shown,
			"can_notify", &notify, "driver", &driver, "ib_port", &ib_port);
	if (e == 0 && (ib_port < 0 || ib_port > UINT8_MAX))
		e = -EBADMSG;
	if (e == 0)
		e = from_hex(hex, ret);
	if (e == 0)
		*ret_peer = (struct peer) {
			.end = json_pack("{s:s, s:o, s:o}", "host", host, "device", device[0] ? json_string(device) : json_null(), "address",
					 shown[0] ? json_string(shown) : json_null()),
			.ib_port = (uint32_t) ib_port,
			.can_notify = notify,
		};
	if (e == 0 && driver[0])
		(void) json_object_set_new(ret_peer->end, "driver", json_string(driver));
	json_decref(payload);
	return e < 0 ? failure(-EBADMSG, EXIT_PEER, "%s sent an address that is none; refused", r->control->peer_name) : 0;
}

int exchange_addresses(struct run *r, struct peer *ret) {
	struct address theirs = { 0 };
	int e;

	e = say_address(r);
	if (e < 0)
		return e;
	e = hear_address(r, &theirs, ret);
	if (e < 0)
		return e;
	e = r->backend->connect(r->session, &theirs);
	if (e < 0)
		return e;
	e = control_send(r->control, FRAME_CONNECTED, NULL);
	return e < 0 ? e : control_expect(r->control, FRAME_CONNECTED, r->job->timeout_ns, NULL);
}

int phase_to_json(const struct phase *p, json_t **ret) {
	*ret = json_pack("{s:I, s:b, s:b, s:I}", "size", (json_int_t) p->size, "warmup", p->warmup, "half_round_trip", p->half_round_trip, "count",
			 (json_int_t) p->count);
	return *ret ? 0 : -ENOMEM;
}

int phase_from_json(const struct job *job, const json_t *json, struct phase *ret) {
	json_int_t size, count;
	int warmup, half, e;

	e = json_unpack((json_t *) (uintptr_t) json, "{s:I, s:b, s:b, s:I!}", "size", &size, "warmup", &warmup, "half_round_trip", &half, "count",
			&count);
	/* The arena has room for the job's largest size and no more. */
	if (e < 0 || size <= 0 || (uint64_t) size > job_largest_size(job) || count < 0 || (op_is_atomic(job->op) && size % 8) ||
	    (half && (job->kind != KIND_LATENCY || (!op_is_send(job->op) && !op_is_write(job->op)))))
		return failure(-EBADMSG, EXIT_PEER, "the peer asked for a phase that its job does not allow; refused");
	*ret = (struct phase) { .size = (uint64_t) size, .warmup = warmup, .half_round_trip = half, .count = (uint64_t) count };
	return 0;
}
