/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated machine: its devices (SIM_CXI_DEVICES) and services (SIM_CXI_SERVICES),
 * and the order by which fi_cxi(7), "Authorization Keys", finds a key for who gives none.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NAME=NIC,...: both NIC addresses are of cxi_send_lat(1)'s example, server and client. */
#define DEVICES "sim_cxi0=0x12,sim_cxi1=0x13"
/* ID[:vni=N[+N]][:uid=N][:gid=N][:tc=low-latency][:disabled],...: 1 is the driver's default service, open to all. */
#define SERVICES "1,5:vni=1024+1025:uid=65534"

struct sim_device sim_devices[SIM_DEVICES_MAX];
unsigned sim_device_count;
static struct sim_service services[SIM_SERVICES_MAX];
static unsigned service_count;

static bool device_wanted(const char *name) {
	const char *plain = strncmp(name, "sim_", 4) == 0 ? name + 4 : name;
	char list[256], *rest = list, *word;

	if (!sim_variables.device_names)
		return true;
	(void) snprintf(list, sizeof(list), "%s", sim_variables.device_names);
	while ((word = strsep(&rest, ",")))
		if (strcmp(word, name) == 0 || strcmp(word, plain) == 0)
			return true;
	return false;
}

static void read_devices(void) {
	const char *given = getenv("SIM_CXI_DEVICES");
	char list[512], *rest = list, *word;

	(void) snprintf(list, sizeof(list), "%s", given ? given : DEVICES);
	while ((word = strsep(&rest, ",")) && sim_device_count < SIM_DEVICES_MAX) {
		struct sim_device *d = &sim_devices[sim_device_count];
		char *nic = strchr(word, '='), *source = strchr(word, '@');

		if (!nic || strncmp(word, "sim_", 4) != 0) {
			SIM_WARN(FI_LOG_CORE, "SIM_CXI_DEVICES: \"%s\" is not sim_NAME=NIC[@ADDRESS]\n", word);
			continue;
		}
		*nic = '\0';
		if (!device_wanted(word))
			continue;
		(void) snprintf(d->name, sizeof(d->name), "%s", word);
		(void) snprintf(d->source, sizeof(d->source), "%s", source ? source + 1 : "");
		d->nic = (uint32_t) strtoul(nic + 1, NULL, 0) & 0xfffff;
		sim_device_count++;
	}
}

static void read_service(char *text) {
	struct sim_service s = { .uid = -1, .gid = -1, .enabled = true };
	char *word = strsep(&text, ":"), *vni;

	s.id = (uint32_t) strtoul(word, NULL, 0);
	while ((word = strsep(&text, ":"))) {
		if (strncmp(word, "vni=", 4) == 0)
			for (word += 4; (vni = strsep(&word, "+")) && s.vni_count < SIM_VNIS_MAX;)
				s.vnis[s.vni_count++] = (uint16_t) strtoul(vni, NULL, 0);
		else if (strncmp(word, "uid=", 4) == 0)
			s.uid = strcmp(word + 4, "me") == 0 ? (long) getuid() : strtol(word + 4, NULL, 0);
		else if (strncmp(word, "gid=", 4) == 0)
			s.gid = strcmp(word + 4, "me") == 0 ? (long) getgid() : strtol(word + 4, NULL, 0);
		else if (strcmp(word, "tc=low-latency") == 0)
			s.only_low_latency = true;
		else if (strcmp(word, "disabled") == 0)
			s.enabled = false;
		else
			SIM_WARN(FI_LOG_CORE, "SIM_CXI_SERVICES: service %u: \"%s\" is not understood\n", s.id, word);
	}
	if (service_count < SIM_SERVICES_MAX)
		services[service_count++] = s;
}

void sim_services_read(void) {
	const char *given = getenv("SIM_CXI_SERVICES");
	char list[1024], *rest = list, *word;

	read_devices();
	(void) snprintf(list, sizeof(list), "%s", given ? given : SERVICES);
	while ((word = strsep(&rest, ",")))
		if (*word)
			read_service(word);
}

const struct sim_device *sim_device_named(const char *name) {
	for (unsigned i = 0; i < sim_device_count; i++)
		if (strcmp(sim_devices[i].name, name) == 0 || strcmp(sim_devices[i].name + 4, name) == 0)
			return &sim_devices[i];
	return NULL;
}

const struct sim_device *sim_device_at(uint32_t nic) {
	for (unsigned i = 0; i < sim_device_count; i++)
		if (sim_devices[i].nic == nic)
			return &sim_devices[i];
	return NULL;
}

static const struct sim_service *service_of(uint32_t id) {
	for (unsigned i = 0; i < service_count; i++)
		if (services[i].id == id)
			return &services[i];
	return NULL;
}

static bool has_vni(const struct sim_service *s, uint16_t vni) {
	for (unsigned i = 0; i < s->vni_count; i++)
		if (s->vnis[i] == vni)
			return true;
	return s->vni_count == 0;
}

static uint16_t vni_of(const struct sim_service *s) {
	return s->vni_count > 0 ? s->vnis[0] : (uint16_t) sim_variables.default_vni;
}

/* 1: the launcher's variables. Lists of devices and services go by the same index; of the VNIs the first is taken. */
static int key_of_launcher(const struct sim_device *device, struct sim_auth_key *ret) {
	const char *vnis = getenv("SLINGSHOT_VNIS"), *devices = getenv("SLINGSHOT_DEVICES"),
		*ids = getenv("SLINGSHOT_SVC_IDS");
	char names[256], numbers[256], *rest = names, *others = numbers, *name, *number;

	if (!vnis || !devices || !ids)
		return -FI_ENODATA;
	(void) snprintf(names, sizeof(names), "%s", devices);
	(void) snprintf(numbers, sizeof(numbers), "%s", ids);
	while ((name = strsep(&rest, ",")) && (number = strsep(&others, ",")))
		if (strcmp(name, device->name) == 0 || strcmp(name, device->name + 4) == 0) {
			*ret = (struct sim_auth_key) {
				.svc_id = (uint32_t) strtoul(number, NULL, 0),
				.vni = (uint16_t) strtoul(vnis, NULL, 0),
			};
			return 0;
		}
	return -FI_ENODATA;
}

int sim_key_generate(const struct sim_device *device, struct sim_auth_key *ret) {
	if (key_of_launcher(device, ret) == 0)
		return 0;
	/* 2: of this user; 3: of this group; 4: of anybody */
	for (int rule = 2; rule <= 4; rule++)
		for (unsigned i = 0; i < service_count; i++) {
			const struct sim_service *s = &services[i];
			bool match = rule == 2 ? s->uid == (long) getuid() :
				     rule == 3 ? s->gid == (long) getgid() : s->uid < 0 && s->gid < 0;

			if (!s->enabled || !match)
				continue;
			*ret = (struct sim_auth_key) { .svc_id = s->id, .vni = vni_of(s) };
			return 0;
		}
	SIM_WARN(FI_LOG_DOMAIN, "%s: no service for this user\n", device->name);
	return -FI_EINVAL;
}

int sim_key_check(const struct sim_auth_key *key, const struct sim_device *device, uint32_t tclass) {
	const struct sim_service *s = service_of(key->svc_id);

	if (!s || !s->enabled) {
		SIM_WARN(FI_LOG_DOMAIN, "%s: service %u: %s\n", device->name, key->svc_id, s ? "disabled" : "unknown");
		return -FI_EINVAL;
	}
	if (!has_vni(s, key->vni)) {
		SIM_WARN(FI_LOG_DOMAIN, "Invalid VNI %u for %s and svc_id %u\n", key->vni, device->name, key->svc_id);
		return -FI_EINVAL;
	}
	/* the driver gives no resources to who is no member */
	if ((s->uid >= 0 || s->gid >= 0) && s->uid != (long) getuid() && s->gid != (long) getgid()) {
		SIM_WARN(FI_LOG_DOMAIN, "%s: service %u: this user is no member\n", device->name, key->svc_id);
		return -FI_ENODEV;
	}
	if (s->only_low_latency && tclass != FI_TC_LOW_LATENCY) {
		SIM_WARN(FI_LOG_DOMAIN, "%s: service %u: low-latency only\n", device->name, key->svc_id);
		return -FI_EINVAL;
	}
	return 0;
}
