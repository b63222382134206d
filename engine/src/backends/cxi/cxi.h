/* SPDX-License-Identifier: Apache-2.0 */
/* The cxi backend's own parts: cxi.c is what only CXI has of libfabric, cxi_host.c what a host must have for it. */
#pragma once

#include "base/util.h"

enum { CXI_MISSING_MAX = 480 };

/* What a host has for CXI, as far as files tell. */
struct cxi_host {
	bool nic;                       /* a Slingshot NIC on the PCI bus */
	bool driver;                    /* a device in /sys/class/cxi: */
	char device[32];                /* the first one */
	bool node, permitted;           /* its file in /dev, and whether this user may read and write it */
	bool library;                   /* libcxi can be loaded */
	bool provider;                  /* libfabric has a cxi provider; the caller knows */
};

/* Looks below `root` ("": this host's own files; tests have others). */
void cxi_host_look(const char *root, struct cxi_host *ret);

/* The missing parts with their remedies, as one text; where none is, what is left: a service. */
void cxi_host_missing(const struct cxi_host *host, char ret[CXI_MISSING_MAX]);
