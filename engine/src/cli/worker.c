/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>

#include "backends/registry.h"
#include "output/bad_byte.h"
#include "measure/exchange.h"
#include "host/footprint.h"
#include "memory/memory_room.h"
#include "personality.h"
#include "measure/transfer.h"

static int say_result(struct run *r) {
	const struct outcome *o = &r->outcome;
	struct footprint held = footprint_now();

	return control_send(r->control, FRAME_RESULT,
			    json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o*}", "process_s",
				      o->cpu.process_s, "host_s", o->cpu.host_s, "messages", (json_int_t) o->messages,
				      "received", (json_int_t) o->received, "checked_bytes",
				      (json_int_t) o->integrity.checked_bytes, "bad_bytes",
				      (json_int_t) o->integrity.bad_bytes, "lost", (json_int_t) o->lost, "idle_ns",
				      (json_int_t) o->idle_ns, "resident_bytes", (json_int_t) held.resident_bytes,
				      "handles", (json_int_t) held.handles, "first_bad", bad_byte_say(&o->integrity)));
}

static int serve_phase(struct run *r, const json_t *start) {
	bool receives;
	int e;

	e = phase_from_json(r->job, start, &r->phase);
	if (e < 0)
		return e;
	receives = op_takes_receive(r->job->op) || r->phase.half_round_trip;
	e = verify_prepare(r);
	if (e < 0)
		return e;
	run_begin(r);
	e = receives ? run_lend_all(r, r->job->kind == KIND_LATENCY ? 2 : run_receives(r->job, r->arena.window)) : 0;
	if (e < 0)
		return e;
	e = control_send(r->control, FRAME_STARTED, NULL);
	if (e < 0)
		return e;
	e = r->job->kind == KIND_LATENCY ? latency_server(r) : bandwidth_server(r);
	if (e < 0)
		return e;
	run_end(r);
	e = run_wait_peer(r, FRAME_DONE);
	return e < 0 ? e : say_result(r);
}

static int serve_job(const struct options *o, struct control *c, const json_t *payload) {
	struct open_arguments arguments;
	struct peer peer = { 0 };
	struct job job;
	struct run run = { 0 };
	bool shown;
	json_t *start;
	int e;

	e = job_from_json(json_object_get(payload, "job"), &job);
	if (e == 0)
		e = backend_require(&job);
	if (e == 0 && o->personality)
		e = personality_serve_check(o, &job);
	if (e < 0)
		return e;
	/* What the client asks for outranks what this server was started with. */
	if (job_has_lanes(&job) && !job.server_devices[0] && job_pairs(&job) == 1)
		memcpy(job.server_devices, o->job.device, sizeof(o->job.device));
	else if (!job.server_device[0])
		memcpy(job.server_device, o->job.device, sizeof(job.server_device));
	if (!job.server_cpu[0])
		memcpy(job.server_cpu, o->job.cpu, sizeof(job.server_cpu));
	if (!job.server_numa[0])
		memcpy(job.server_numa, o->job.numa, sizeof(job.server_numa));
	if (!job.verbs.server_ib_port)
		job.verbs.server_ib_port = o->job.verbs.ib_port;
	if (job.verbs.server_gid_index < 0)
		job.verbs.server_gid_index = o->job.verbs.gid_index;
	if (job.cxi.server_svc_id < 0)
		job.cxi.server_svc_id = o->job.cxi.svc_id;
	if (o->personality && job.cxi.server_svc_id >= 0 && job.cxi.vni < 0)
		job.cxi.vni = personality_vni();
	/*
	 * A client's -v names a VNI for both ends;
	 * this end's service is then the originals' default, or the launcher's.
	 */
	if (o->personality && job.cxi.vni >= 0 && job.cxi.server_svc_id < 0 && !getenv("SLINGSHOT_SVC_IDS"))
		job.cxi.server_svc_id = PERSONALITY_SERVICE;
	arguments = (struct open_arguments) {
		.job = &job,
		.role = ROLE_SERVER,
		.local = &c->local,
		.peer = &c->peer,
		.wake_fd = -1,
	};
	job.timeout_ns = MIN(job.timeout_ns, o->timeout_ns);
	machine_compare(json_string_value(json_object_get(payload, "machine")), &arguments);
	if (job_has_lanes(&job))
		return transfer_serve(c, &job, &arguments);
	e = run_open(&run, &arguments, c);
	if (e == 0)
		e = exchange_addresses(&run, &peer);
	shown = e == 0 && o->personality;
	if (shown)
		personality_serve_begin(o->personality, &run, &peer);
	while (e == 0 && !control_has_ended(c, job.timeout_ns)) {
		e = control_expect(c, FRAME_START, job.timeout_ns, &start);
		if (e < 0)
			break;
		e = serve_phase(&run, start);
		json_decref(start);
		if (e == 0 && shown)
			personality_serve_phase(o->personality, &run);
	}
	if (shown)
		personality_serve_end(o->personality);
	json_decref(peer.end);
	if (e < 0)
		control_send_error(c); /* before the data path closes: its loss would hide the reason */
	run_close(&run);
	return e;
}

/* Waits for the listener's answer, or for the client to go away: then the listener hears it from our end of file. */
static int await_meeting(int listener_fd, struct control *c, struct meeting_answer *ret) {
	struct pollfd p[2] = { { .fd = listener_fd, .events = POLLIN }, { .fd = c->fd, .events = POLLIN } };

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return failure(-errno, EXIT_INTERNAL, "cannot wait for a meeting: %s", strerror(errno));
		if (p[0].revents)
			return recv(listener_fd, ret, sizeof(*ret), 0) == sizeof(*ret)
				       ? 0
				       : failure(-ECONNRESET, EXIT_INTERNAL, "the listener ended during a meeting");
		if (p[1].revents)
			return failure_quiet(-ECONNRESET, EXIT_PEER, "the party left");
	}
}

static int serve_meet(int listener_fd, struct control *c, const json_t *payload) {
	struct meeting_request request = { 0 };
	struct meeting_answer answer;
	json_int_t parties, timeout;
	const char *flow;
	int e;

	e = json_unpack((json_t *) (uintptr_t) payload, "{s:s, s:I, s:I!}", "flow", &flow, "parties", &parties,
			"timeout_ms", &timeout);
	if (e < 0 || copy_string(request.flow, sizeof(request.flow), flow) < 0 || parties < 1 ||
	    parties > OPTIONS_PARTIES_MAX || timeout < 1 || timeout > UINT32_MAX)
		return failure(-EBADMSG, EXIT_PEER, "the peer asked for an impossible meeting; refused");
	request.parties = (uint32_t) parties;
	request.timeout_ms = (uint32_t) timeout;
	if (send(listener_fd, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
		return failure(-ECONNRESET, EXIT_INTERNAL, "the listener ended before a meeting");
	e = await_meeting(listener_fd, c, &answer);
	if (e < 0)
		return e;
	if (answer.parties != request.parties)
		return failure(-EINVAL, EXIT_PEER,
			       "flow %s: one party expects %u, another %u; give all the same --parties", flow,
			       request.parties, answer.parties);
	if (answer.arrived < answer.parties)
		return failure_quiet(-ETIMEDOUT, EXIT_PEER, "flow %s: %u of %u parties came within %.0f s", flow,
				     answer.arrived, answer.parties, (double) timeout / 1000);
	return control_send(c, FRAME_MET, json_pack("{s:I}", "parties", (json_int_t) answer.parties));
}

int worker_run(const struct options *o, struct control *control, int listener_fd) {
	_cleanup_(control_closep) struct control *c = control;
	char host[256], machine[MACHINE_MAX];
	json_t *payload = NULL;
	enum frame_type type;
	int e;

	/* Whatever ends the listener ends its workers; had it ended before this, no signal would come. */
	(void) prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (poll(&(struct pollfd) { .fd = listener_fd }, 1, 0) > 0)
		return EXIT_INTERNAL;
	(void) prctl(PR_SET_NAME, "perch-job");
	control_set_timeout(c, o->timeout_ns);
	room_limit(o->max_memory);
	host_name(host, sizeof(host));
	machine_identity(machine);
	e = control_send(c, FRAME_IDENTITY, json_pack("{s:s, s:s}", "host", host, "machine", machine));
	if (e == 0)
		e = control_receive(c, o->timeout_ns, &type, &payload);
	if (e < 0 && o->once)
		return WORKER_STRANGER;
	if (e == 0)
		e = type == FRAME_JOB	 ? serve_job(o, c, payload)
		    : type == FRAME_MEET ? serve_meet(listener_fd, c, payload)
					 : failure(-EPROTO, EXIT_PEER, "%s began with frame %d; refused", c->peer_name,
						   type);
	json_decref(payload);
	if (e < 0) {
		/*
		 * A second time, if a run has said so before it closed its data path;
		 * the client has read the first by then.
		 */
		control_send_error(c);
		return (int) failure_code();
	}
	return EXIT_MEASURED;
}
