/* SPDX-License-Identifier: Apache-2.0 */
/* Whose GPUs are in this host, by the device files that their kernel drivers make: without these no runtime works. */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>

#include "gpu.h"
#include "base/message.h"

static bool any_matches(const char *root, const char *pattern) {
	char path[PATH_MAX];
	glob_t found;
	bool ret;

	if (snprintf(path, sizeof(path), "%s/%s", root, pattern) >= (int) sizeof(path))
		return false;
	ret = glob(path, GLOB_NOSORT, NULL, &found) == 0;
	if (ret)
		globfree(&found);
	return ret;
}

/* PCI's vendor of a device file's device; others drive render nodes, too. */
static bool has_vendor(const char *sys, const char *node, unsigned vendor) {
	char path[PATH_MAX];
	unsigned found = 0;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/class/drm/%s/device/vendor", sys, node) >= (int) sizeof(path))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%x", &found) != 1)
		found = 0;
	(void) fclose(f);
	return found == vendor;
}

static bool has_nvidia(const char *dev, const char *sys) {
	(void) sys;
	return any_matches(dev, "nvidia[0-9]*");
}

static bool has_amd(const char *dev, const char *sys) {
	(void) sys;
	return any_matches(dev, "kfd");
}

static bool has_intel(const char *dev, const char *sys) {
	enum { VENDOR_INTEL = 0x8086 };         /* the PCI SIG's list of vendors */
	char pattern[PATH_MAX];
	bool ret = false;
	glob_t found;

	(void) snprintf(pattern, sizeof(pattern), "%s/dri/renderD*", dev);
	if (glob(pattern, 0, NULL, &found) != 0)
		return false;
	for (size_t i = 0; i < found.gl_pathc && !ret; i++)
		ret = has_vendor(sys, strrchr(found.gl_pathv[i], '/') + 1, VENDOR_INTEL);
	globfree(&found);
	return ret;
}

static const struct {
	const char *type;               /* as cxi_send_lat(1) spells it */
	enum memory_type memory;
	bool (*is_here)(const char *dev, const char *sys);
} makers[] = {
	{ "NVIDIA", MEMORY_CUDA, has_nvidia },
	{ "AMD", MEMORY_ROCM, has_amd },
	{ "INTEL", MEMORY_ZE, has_intel },
};

static int detect(const char *dev, const char *sys, enum memory_type *ret) {
	int found = -1;

	for (size_t i = 0; i < ELEMENTSOF(makers); i++) {
		if (!makers[i].is_here(dev, sys))
			continue;
		if (found >= 0)
			return failure(-ENOTUNIQ, EXIT_HOST,
				       "there are GPUs of %s and of %s on this host: say which are meant",
				       makers[found].type, makers[i].type);
		found = (int) i;
	}
	if (found < 0)
		return failure(-ENODEV, EXIT_HOST, "there is no GPU on this host: "
			       "none of %s/nvidia0 (NVIDIA), %s/kfd (AMD) and %s/dri/renderD* of Intel is there; "
			       "load the driver of the GPU, or leave GPU memory out", dev, dev, dev);
	*ret = makers[found].memory;
	return 0;
}

int gpu_memory_kind_in(const char *dev, const char *sys, const char *type, const char *number,
		       char ret[JOB_MEMORY_TEXT]) {
	struct memory_kind kind = { .type = MEMORY_HOST };
	char name[JOB_NAME_MAX];
	int r;

	/* The number first: a word that is none is the command's fault, whatever this host has. */
	if (snprintf(name, sizeof(name), "cuda:%s", number) >= (int) sizeof(name) ||
	    number[strspn(number, "0123456789")] || memory_kind_parse(name, &kind) < 0)
		return -EINVAL;
	kind.type = MEMORY_HOST;
	for (size_t i = 0; type && i < ELEMENTSOF(makers); i++)
		if (strcasecmp(type, makers[i].type) == 0)
			kind.type = makers[i].memory;
	if (type && kind.type == MEMORY_HOST)
		return -EINVAL;
	r = type ? 0 : detect(dev, sys, &kind.type);
	if (r < 0)
		return r;
	memory_kind_format(&kind, ret);
	return 0;
}

int gpu_memory_kind(const char *type, const char *number, char ret[JOB_MEMORY_TEXT]) {
	return gpu_memory_kind_in("/dev", "/sys", type, number, ret);
}
