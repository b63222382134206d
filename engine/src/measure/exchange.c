/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include <stdio.h>
#include <sys/stat.h>

void host_name(char *ret, size_t size) {
	if (gethostname(ret, size) < 0)
		(void) snprintf(ret, size, "unknown");
	ret[size - 1] = '\0';
}

void host_boot_id(char ret[BOOT_ID_MAX]) {
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	ret[0] = '\0';
	if (!f)
		return;
	if (!fgets(ret, BOOT_ID_MAX, f))
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	(void) fclose(f);
}

double host_uptime_s(void) {
	FILE *f = fopen("/proc/uptime", "re");
	double s;

	if (!f)
		return -1;
	if (fscanf(f, "%lf", &s) != 1)
		s = -1;
	(void) fclose(f);
	return s;
}

void machine_identity(char ret[MACHINE_MAX]) {
	char boot[BOOT_ID_MAX], pids[64] = "";
	struct stat shm = { 0 };
	ssize_t n;

	host_boot_id(boot);
	n = readlink("/proc/self/ns/pid", pids, sizeof(pids) - 1);
	pids[MAX(n, 0)] = '\0';
	(void) stat("/dev/shm", &shm);
	(void) snprintf(ret, MACHINE_MAX, "%s %s %llx.%llx", boot, pids, (unsigned long long) shm.st_dev,
			(unsigned long long) shm.st_ino);
}

void machine_compare(const char *theirs, struct open_arguments *ret) {
	char ours[MACHINE_MAX];
	size_t boot;

	machine_identity(ours);
	boot = strcspn(ours, " ");
	ret->same_host = theirs && streq(theirs, ours);
	ret->same_machine = theirs && boot > 0 && strncmp(theirs, ours, boot + 1) == 0;
}

int exchange_hear_identity(struct control *c, uint64_t timeout_ns, struct open_arguments *ret) {
	json_t *payload = NULL;
	int e;

	e = control_expect(c, FRAME_IDENTITY, timeout_ns, &payload);
	if (e < 0)
		return e;
	machine_compare(json_string_value(json_object_get(payload, "machine")), ret);
	json_decref(payload);
	return 0;
}

int exchange_say_job(struct control *c, const struct job *job) {
	char machine[MACHINE_MAX];
	json_t *json;
	int e;

	e = job_to_json(job, &json);
	if (e < 0)
		return e;
	machine_identity(machine);
	return control_send(c, FRAME_JOB, json_pack("{s:o, s:s}", "job", json, "machine", machine));
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
	const struct slingshot *c = s->slingshot;
	char hex[2 * ADDRESS_MAX + 1], host[256], gpu[160];
	struct address a = { 0 };
	json_t *payload;
	int e;

	e = r->backend->local_address(r->session, &a);
	if (e < 0)
		return e;
	to_hex(a.bytes, a.length, hex);
	host_name(host, sizeof(host));
	arena_gpu_name(&r->arena, gpu, sizeof(gpu));
	payload = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:o}", "gpu", gpu, "address", hex,
			    "host", host, "device", s->device, "shown", s->address, "can_notify", s->can_notify,
			    "driver", s->driver, "placement", placed_to_json(&r->placed));
	if (c)
		(void) json_object_update_new(payload, json_pack("{s:i, s:i, s:O, s:b, s:b}", "svc_id", c->svc_id,
								 "vni", c->vni, "environment", c->environment, "idc",
								 c->idc, "ll", c->ll));
	return control_send(r->control, FRAME_ADDRESS, payload);
}

/* A peer may say anything: an object of a few short strings, or nothing. */
static bool is_environment(const json_t *o) {
	const char *name;
	json_t *value;

	if (!json_is_object(o) || json_object_size(o) > ENVIRONMENT_VARIABLES_MAX)
		return false;
	json_object_foreach((json_t *) (uintptr_t) o, name, value)
		if (strlen(name) >= ENVIRONMENT_NAME_MAX || !json_is_string(value) ||
		    json_string_length(value) >= ENVIRONMENT_VALUE_MAX)
			return false;
	return true;
}

/* What the other end's provider has read, and what came of it, where there is such a provider. */
static int add_provider(json_t *end, json_t *environment, int idc, int ll) {
	if (!environment)
		return 0;
	if (!is_environment(environment) || idc < 0 || ll < 0)
		return -EBADMSG;
	return json_object_update_new(end, json_pack("{s:O, s:b, s:b}", "environment", environment, "idc", idc, "ll",
						     ll)) < 0 ? -ENOMEM : 0;
}

bool exchange_agree(const struct run *r, const json_t *end, const char *key, bool own) {
	const struct job *j = r->job;
	bool client = r->role == ROLE_CLIENT, theirs = !json_is_false(json_object_get(end, key));
	bool server_sends = j->bidirectional ||
		(j->kind == KIND_LATENCY && (op_is_send(j->op) || r->phase.half_round_trip));

	return (own || !(client || server_sends)) && (theirs || !(!client || server_sends));
}

static int hear_address(struct run *r, struct address *ret, struct peer *ret_peer) {
	const char *hex, *host, *device, *shown, *driver = "", *gpu = "";
	json_t *payload = NULL, *environment = NULL, *placement = NULL;
	struct placed placed = { .why = PLACED };
	int e, notify, service = -1, vni = -1, idc = -1, ll = -1;

	e = control_expect(r->control, FRAME_ADDRESS, r->job->timeout_ns + arena_takes(&r->arena), &payload);
	if (e < 0)
		return e;
	e = json_unpack(payload, "{s:s, s:s, s:s, s:s, s:b, s?s, s?s, s?i, s?i, s?o, s?b, s?b, s:o!}", "address",
			&hex, "host", &host, "device", &device, "shown", &shown, "can_notify", &notify, "gpu", &gpu,
			"driver", &driver, "svc_id", &service, "vni", &vni, "environment",
			&environment, "idc", &idc, "ll", &ll, "placement", &placement);
	if (e == 0)
		e = placed_from_json(placement, &placed);
	if (e == 0)
		e = from_hex(hex, ret);
	if (e == 0)
		*ret_peer = (struct peer) {
			.end = json_pack("{s:s, s:o, s:o}", "host", host, "device", device[0] ? json_string(device)
					 : json_null(), "address", shown[0] ? json_string(shown) : json_null()),
			.can_notify = notify,
			.placed = placed,
		};
	if (e == 0)
		(void) json_object_set(ret_peer->end, "placement", placement);
	if (e == 0 && driver[0])
		(void) json_object_set_new(ret_peer->end, "driver", json_string(driver));
	if (e == 0 && backend_is(r->backend->facts, BACKEND_CXI)) {
		(void) json_object_set_new(ret_peer->end, "svc_id", service < 0 ? json_null() : json_integer(service));
		(void) json_object_set_new(ret_peer->end, "vni", vni < 0 ? json_null() : json_integer(vni));
	}
	if (e == 0 && gpu[0])
		(void) json_object_set_new(ret_peer->end, "gpu", json_string(gpu));
	if (e == 0)
		e = add_provider(ret_peer->end, environment, idc, ll);
	/* One simulated end is enough: the figures are of both. Several GPUs' names follow each other. */
	if (e == 0)
		r->session->simulated |= is_simulated_name(device) || is_simulated_name(gpu) ||
			strstr(gpu, ", " SIMULATED_MARK);
	json_decref(payload);
	return e < 0 ? failure(-EBADMSG, EXIT_PEER, "%s sent a malformed address; rejected", r->control->peer_name) : 0;
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

void exchange_blame(struct control *c) {
	char text[FAILURE_TEXT_MAX];

	if (failure_code() != EXIT_INTERNAL || !control_is_lost(c, 200 * NSEC_PER_MSEC))
		return;
	(void) snprintf(text, sizeof(text), "%s", failure_text());
	failure_reset();
	(void) failure_quiet(-ECONNRESET, EXIT_PEER, "lost %s: %s", c->peer_name, text);
}

int phase_to_json(const struct phase *p, json_t **ret) {
	*ret = json_pack("{s:I, s:b, s:b, s:I, s:I}", "size", (json_int_t) p->size, "warmup", p->warmup,
			 "half_round_trip", p->half_round_trip, "count", (json_int_t) p->count, "duration_ns",
			 (json_int_t) p->duration_ns);
	return *ret ? 0 : -ENOMEM;
}

int phase_from_json(const struct job *job, const json_t *json, struct phase *ret) {
	json_int_t size, count, duration;
	int warmup, half, e;

	e = json_unpack((json_t *) (uintptr_t) json, "{s:I, s:b, s:b, s:I, s:I!}", "size", &size, "warmup", &warmup,
			"half_round_trip", &half, "count", &count, "duration_ns", &duration);
	/* The arena has room for the job's largest size and no more. */
	if (e < 0 || size <= 0 || (uint64_t) size > job_largest_size(job) || count < 0 || duration < 0 ||
	    (uint64_t) duration > (warmup ? job->warmup_ns : job->duration_ns) ||
	    (uint64_t) size % job_word_bytes(job) != 0 ||
	    (half && (job->kind != KIND_LATENCY || (!op_is_send(job->op) && !op_is_write(job->op)))))
		return failure(-EBADMSG, EXIT_PEER, "the peer asked for a phase that its job does not allow; refused");
	*ret = (struct phase) { .size = (uint64_t) size, .warmup = warmup, .half_round_trip = half,
				.count = (uint64_t) count, .duration_ns = (uint64_t) duration };
	return 0;
}
