/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfabric, loaded when the ofi backend is first used and not with the program:
 * some of the libraries that it brings sleep before main() (libpsm_infinipath 0.2 s on Debian 12),
 * which every `perch meet` and every tcp test would pay for.
 *
 * libfabric's headers call five functions of the library by name; the rest goes through tables. The names are replaced
 * before the headers are read, so that their inline functions call ours, too.
 */
#pragma once

#define fi_getinfo ofi_library_getinfo
#define fi_freeinfo ofi_library_freeinfo
#define fi_dupinfo ofi_library_dupinfo
#define fi_fabric ofi_library_fabric
#define fi_strerror ofi_library_strerror

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/* Loads the library if that has not been done yet. Negative: said once, EXIT_HOST. */
int ofi_library_load(void);
