/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs_error.h"

#include <stdio.h>

#include "base/message.h"
#include "verbs_sysfs.h"

/*
 * Every status of a work completion (ibv_poll_cq(3); InfiniBand Architecture Specification, volume 1, 11.6.2):
 * whose fault it is, the likely cause, and what to do.
 */
static const struct explanation {
	int error;
	enum exit_code code;
	const char *cause;
} explanations[] = {
	[IBV_WC_SUCCESS] = { 0, EXIT_MEASURED, "" },
	[IBV_WC_LOC_LEN_ERR] = { -EIO, EXIT_INTERNAL, "a message is longer than its receive buffer, "
				 "the port's limit or, with UD, the path MTU; use a smaller --size" },
	[IBV_WC_LOC_QP_OP_ERR] = { -EIO, EXIT_INTERNAL, "the device found its own queue pair inconsistent with the "
				   "request; look for a firmware or driver error in the kernel's log (dmesg)" },
	[IBV_WC_LOC_EEC_OP_ERR] = { -EIO, EXIT_INTERNAL,
				    "the device's end-to-end context failed; look into the kernel's log (dmesg)" },
	[IBV_WC_LOC_PROT_ERR] = { -EIO, EXIT_INTERNAL, "a local buffer lies outside its memory region or lacks "
				  "the access right; this is an error of this program or of the driver" },
	[IBV_WC_WR_FLUSH_ERR] = { -ECONNRESET, EXIT_PEER, "the queue pair was closed before this work request; "
				  "the peer disconnected, or an earlier error (above or at the peer) closed it" },
	[IBV_WC_MW_BIND_ERR] = { -EIO, EXIT_INTERNAL,
				 "a memory window could not be bound; this is an error of this program" },
	[IBV_WC_BAD_RESP_ERR] = { -EREMOTEIO, EXIT_PEER, "the peer's response was invalid; "
				  "run the same version on both ends; if they do, check the devices' error counters" },
	[IBV_WC_LOC_ACCESS_ERR] = { -EIO, EXIT_INTERNAL, "the peer wrote to a local region that does not allow it; "
				    "this is an error of this program or of the driver" },
	[IBV_WC_REM_INV_REQ_ERR] = { -EREMOTEIO, EXIT_PEER,
				     "the peer rejected the request; the message is longer than its receive buffer, "
				     "or its device lacks the operation; use a smaller --size, or another --op" },
	[IBV_WC_REM_ACCESS_ERR] = { -EREMOTEIO, EXIT_PEER, "remote access error: address, key or access rights do "
				    "not match the peer's memory region; run the same version on both ends, "
				    "and check that the device has the operation (atomics: 'perch devices')" },
	[IBV_WC_REM_OP_ERR] = { -EREMOTEIO, EXIT_PEER,
		"the peer could not complete the operation; its own message, or its kernel's log (dmesg), says why" },
	[IBV_WC_RETRY_EXC_ERR] = { -ETIMEDOUT, EXIT_PEER, "retries exceeded: no acknowledgement arrived; the peer is "
				   "down, or the path is cut or drops packets of the MTU; or a GID belongs to another "
				   "network or VLAN; try --mtu 1024, and ping between the addresses of the two GIDs" },
	[IBV_WC_RNR_RETRY_EXC_ERR] = { -ENOBUFS, EXIT_PEER, "receiver not ready: the peer had no receive posted "
				       "for too long; its processor is overloaded or it has stopped; "
				       "raise --rnr-retry (7: for ever) or lower --outstanding" },
	[IBV_WC_LOC_RDD_VIOL_ERR] = { -EIO, EXIT_INTERNAL,
				      "reliable datagram domains do not match; this is an error of this program" },
	[IBV_WC_REM_INV_RD_REQ_ERR] = { -EREMOTEIO, EXIT_PEER, "the peer refused a reliable datagram as invalid" },
	[IBV_WC_REM_ABORT_ERR] = { -ECONNRESET, EXIT_PEER, "the peer aborted the operation; its own message says why" },
	[IBV_WC_INV_EECN_ERR] = { -EIO, EXIT_INTERNAL,
				  "an end-to-end context number is invalid; this is an error of this program" },
	[IBV_WC_INV_EEC_STATE_ERR] = { -EIO, EXIT_INTERNAL, "an end-to-end context is in the wrong state; "
				       "this is an error of this program" },
	[IBV_WC_FATAL_ERR] = { -EIO, EXIT_INTERNAL,
		"the device failed; look into the kernel's log (dmesg), and reset the device or reload its driver" },
	[IBV_WC_RESP_TIMEOUT_ERR] = { -ETIMEDOUT, EXIT_PEER,
		"the peer's answer did not come in time; the peer or its device is gone, or the network was cut" },
	[IBV_WC_GENERAL_ERR] = { -EIO, EXIT_INTERNAL, "the device reports an error without a reason; "
				 "the vendor's code and the kernel's log (dmesg) may have one" },
	[IBV_WC_TM_ERR] = { -EIO, EXIT_INTERNAL, "tag matching failed, which this program does not use" },
	[IBV_WC_TM_RNDV_INCOMPLETE] = { -EIO, EXIT_INTERNAL,
					"a rendezvous was left incomplete, which this program does not use" },
};

static const struct explanation *explain(enum ibv_wc_status status) {
	static const struct explanation unknown = { -EIO, EXIT_INTERNAL,
						    "libibverbs reports a status that this program does not know" };

	return (unsigned) status < ELEMENTSOF(explanations) && explanations[status].cause ? &explanations[status]
	       : &unknown;
}

const char *verbs_wc_cause(enum ibv_wc_status status) {
	return explain(status)->cause;
}

int verbs_wc_failure(const struct ibv_wc *wc, const struct verbs_device *d, const char *peer_name) {
	const struct explanation *e = explain(wc->status);
	char index[32] = "";

	if (d->gid_index >= 0)
		(void) snprintf(index, sizeof(index), ", GID index %d", d->gid_index);
	/* A success handed in is this program's own error; it must not pass for none. */
	return failure(e->error ? e->error : -EIO, e->error ? e->code : EXIT_INTERNAL,
		       "%s port %u (%s%s) to %s: %s (%d, vendor 0x%x): %s", d->name, d->port, d->address, index,
		       peer_name, ibv_wc_status_str(wc->status), (int) wc->status, wc->vendor_err,
		       e->error ? e->cause : "taken for a failure; this is an error of this program");
}

bool verbs_wc_is_silence(enum ibv_wc_status status) {
	return status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RESP_TIMEOUT_ERR;
}

int verbs_local_failure(const struct verbs_device *d) {
	const char *netdev = d->netdev[0] ? d->netdev : "(unknown)";
	struct ibv_gid_entry e = { 0 };
	struct ibv_port_attr port;

	if (ibv_query_port(d->context, d->port, &port) != 0)
		return failure(-ENODEV, EXIT_INTERNAL, "%s port %u of this host cannot be asked any more: "
			       "the device has gone; see the kernel's log (dmesg)", d->name, d->port);
	if (port.state != IBV_PORT_ACTIVE)
		return failure(-ENETDOWN, EXIT_INTERNAL,
			       "%s port %u of this host went down (%s) during the measurement, interface %s; "
			       "bring it up with 'ip link set %s up', and check its cable and switch port", d->name,
			       d->port, verbs_port_state_name(port.state), netdev, netdev);
	if (d->gid_index < 0)
		return 0;
	if (ibv_query_gid_ex(d->context, d->port, (uint32_t) d->gid_index, &e, 0) != 0 ||
	    memcmp(&e.gid, &d->gid, sizeof(e.gid)) != 0)
		return failure(-EADDRNOTAVAIL, EXIT_INTERNAL, "%s port %u of this host lost GID %d (%s) "
			       "during the measurement, interface %s; its address was removed or changed; "
			       "restore it with 'ip address add', and see 'perch devices'", d->name, d->port,
			       d->gid_index, d->address, netdev);
	return 0;
}

static const char *call_remedy(int error) {
	switch (error) {
	case ENOMEM:
	case EAGAIN:
		return "; the limit of locked memory is too low, or the device is out of room; "
		       "raise the limit (ulimit -l, or memlock in /etc/security/limits.conf and LimitMEMLOCK= "
		       "of the service), or use fewer queue pairs";
	case EPERM:
	case EACCES:
		return "; this user may not: "
		       "join the group that owns /dev/infiniband/uverbs* (often rdma), or run as root";
	case EINVAL:
		return "; the device does not take these values: see its limits with 'ibv_devinfo -v'";
	case EOPNOTSUPP: /* ENOTSUP is the same */
	case ENOSYS:
		return "; the device or its driver does not have it";
	case EIO:
	case ENODEV:
		return "; the device is going, or gone: see the kernel's log (dmesg)";
	case ETIMEDOUT:
		return "; the device's firmware did not answer: see the kernel's log (dmesg)";
	default:
		return "";
	}
}

int verbs_call_failure(int error, const struct verbs_device *d, const char *what) {
	int positive = error < 0 ? -error : error;

	if (positive == 0) /* some providers fail without an errno */
		return failure(-EIO, EXIT_HOST,
			       "%s: cannot %s: the driver gives no reason; see the kernel's log (dmesg)", d->name,
			       what);
	return failure(-positive, EXIT_HOST, "%s: cannot %s: %s%s", d->name, what, strerror(positive),
		       call_remedy(positive));
}

int verbs_event_failure(const struct ibv_async_event *event, const struct verbs_device *d) {
	const char *cause;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		cause = "a completion queue overran; lower --outstanding";
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		cause = "a queue pair failed; the peer sent what it must not, or the device erred: "
			"see the kernel's log (dmesg) on both hosts";
		break;
	case IBV_EVENT_SRQ_ERR:
		cause = "the shared receive queue failed; see the kernel's log (dmesg)";
		break;
	case IBV_EVENT_DEVICE_FATAL:
		cause = "the device failed or was removed; see the kernel's log (dmesg)";
		break;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		/*
		 * A reliable connection survives a port that comes back in time (--timeout-exponent);
		 * dating it explains the stall.
		 */
		if (event->element.port_num == d->port)
			notice("%s port %u: %s", d->name, d->port, ibv_event_type_str(event->event_type));
		return 0;
	default:
		/*
		 * news: LID or GID changes, migrated paths, limits reached.
		 * What they break shows as a failed completion.
		 */
		return 0;
	}
	return failure(-EIO, EXIT_INTERNAL, "%s port %u: %s: %s", d->name, d->port,
		       ibv_event_type_str(event->event_type), cause);
}
