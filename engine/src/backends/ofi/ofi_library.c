/* SPDX-License-Identifier: Apache-2.0 */
#include "ofi_library.h"

#include <dlfcn.h>
#include <signal.h>

#include "base/message.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

/*
 * The versions that this program was compiled for, from the Makefile;
 * a name that is no version means the library's default.
 */
#ifndef OFI_VERSION_getinfo
#define OFI_VERSION_getinfo
#define OFI_VERSION_freeinfo
#define OFI_VERSION_dupinfo
#define OFI_VERSION_fabric
#define OFI_VERSION_strerror
#endif

static struct {
	void *handle;
	bool failed;
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
	void (*freeinfo)(struct fi_info *);
	struct fi_info *(*dupinfo)(const struct fi_info *);
	int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	const char *(*strerror)(int);
} library;

/*
 * Libraries that come along catch signals and then exit(1) (libpsm_infinipath does), which here says that a limit was
 * missed. Who is stopped or crashes must be seen to: the shell's 128 + n, and the listener's notice.
 */
static const int guarded[] = { SIGTERM, SIGINT, SIGSEGV, SIGBUS, SIGILL, SIGABRT };

struct handlers {
	struct sigaction before[ELEMENTSOF(guarded)];
};

static void keep_handlers(struct handlers *ret) {
	for (size_t i = 0; i < ELEMENTSOF(guarded); i++)
		(void) sigaction(guarded[i], NULL, &ret->before[i]);
}

static void restore_handlers(const struct handlers *h) {
	for (size_t i = 0; i < ELEMENTSOF(guarded); i++)
		(void) sigaction(guarded[i], &h->before[i], NULL);
}

/* POSIX's way to get a function out of a void pointer: ret is the address of the function pointer. */
static bool find(const char *name, const char *version, void *ret) {
	void *p = version[0] ? dlvsym(library.handle, name, version) : dlsym(library.handle, name);

	memcpy(ret, &p, sizeof(p));
	return p;
}

int ofi_library_load(void) {
	struct handlers h;

	if (library.handle)
		return 0;
	if (library.failed)
		return -FI_ENOSYS;
	keep_handlers(&h);
	library.handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	restore_handlers(&h);
	if (library.handle && find("fi_getinfo", TEXT(OFI_VERSION_getinfo), &library.getinfo) &&
	    find("fi_freeinfo", TEXT(OFI_VERSION_freeinfo), &library.freeinfo) &&
	    find("fi_dupinfo", TEXT(OFI_VERSION_dupinfo), &library.dupinfo) &&
	    find("fi_fabric", TEXT(OFI_VERSION_fabric), &library.fabric) &&
	    find("fi_strerror", TEXT(OFI_VERSION_strerror), &library.strerror))
		return 0;
	(void) failure(-FI_ENOSYS, EXIT_HOST, "ofi: cannot load libfabric: %s; "
		       "install the libfabric that perch was built with, or build perch again on this host", dlerror());
	library.failed = true;
	library.handle = NULL; /* never unloaded: its constructors were not made for that */
	return -FI_ENOSYS;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
	       struct fi_info **ret) {
	struct handlers h;
	int r;

	r = ofi_library_load();
	if (r < 0)
		return r;
	keep_handlers(&h); /* providers are loaded in there */
	r = library.getinfo(version, node, service, flags, hints, ret);
	restore_handlers(&h);
	return r;
}

void fi_freeinfo(struct fi_info *info) {
	if (info && ofi_library_load() == 0)
		library.freeinfo(info);
}

struct fi_info *fi_dupinfo(const struct fi_info *info) {
	return ofi_library_load() == 0 ? library.dupinfo(info) : NULL;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **ret, void *context) {
	int r = ofi_library_load();

	return r < 0 ? r : library.fabric(attr, ret, context);
}

const char *fi_strerror(int error) {
	return ofi_library_load() == 0 ? library.strerror(error) : "libfabric is not there";
}
