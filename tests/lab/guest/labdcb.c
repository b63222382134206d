// SPDX-License-Identifier: GPL-2.0
/*
 * Gives an existing Ethernet interface (parameter dev) the settings of a data center network card: priority flow
 * control, transmission selection, application priorities (the real dcb(8) reads and writes them) and link pause
 * (ethtool -a, -A). The lab's virtio cards have none of these. It is a table of settings only: no pause frame is ever
 * sent, and no queue is ever held.
 */
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/dcbnl.h>
#include <net/net_namespace.h>

static char *dev = "eth1";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "name of the interface");

static struct net_device *card;
static const struct ethtool_ops *card_ethtool;
static struct ethtool_ops with_pause;

static struct ieee_pfc pfc = { .pfc_cap = IEEE_8021QAZ_MAX_TCS };
static struct ieee_ets ets = { .ets_cap = IEEE_8021QAZ_MAX_TCS };
static struct ethtool_pauseparam pause;

static int get_pfc(struct net_device *netdev, struct ieee_pfc *out)
{
	*out = pfc;
	return 0;
}

static int set_pfc(struct net_device *netdev, struct ieee_pfc *in)
{
	pfc = *in;
	pfc.pfc_cap = IEEE_8021QAZ_MAX_TCS;
	return 0;
}

static int get_ets(struct net_device *netdev, struct ieee_ets *out)
{
	*out = ets;
	return 0;
}

static int set_ets(struct net_device *netdev, struct ieee_ets *in)
{
	ets = *in;
	ets.ets_cap = IEEE_8021QAZ_MAX_TCS;
	return 0;
}

/* The kernel keeps the table of applications itself, once a card asks for it. */
static int set_app(struct net_device *netdev, struct dcb_app *app)
{
	return dcb_ieee_setapp(netdev, app);
}

static int delete_app(struct net_device *netdev, struct dcb_app *app)
{
	return dcb_ieee_delapp(netdev, app);
}

static u8 get_dcbx(struct net_device *netdev)
{
	return DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
}

/* 0 is dcbnl's word for "accepted": there is no other mode to choose. */
static u8 set_dcbx(struct net_device *netdev, u8 mode)
{
	return mode == get_dcbx(netdev) ? 0 : 1;
}

static const struct dcbnl_rtnl_ops dcb_table = {
	.ieee_getpfc = get_pfc,
	.ieee_setpfc = set_pfc,
	.ieee_getets = get_ets,
	.ieee_setets = set_ets,
	.ieee_setapp = set_app,
	.ieee_delapp = delete_app,
	.getdcbx = get_dcbx,
	.setdcbx = set_dcbx,
};

static void get_pause(struct net_device *netdev, struct ethtool_pauseparam *out)
{
	out->autoneg = pause.autoneg;
	out->rx_pause = pause.rx_pause;
	out->tx_pause = pause.tx_pause;
}

static int set_pause(struct net_device *netdev, struct ethtool_pauseparam *in)
{
	pause = *in;
	return 0;
}

static int __init labdcb_init(void)
{
	int priority;

	card = dev_get_by_name(&init_net, dev);
	if (!card) {
		pr_err("labdcb: there is no interface %s\n", dev);
		return -ENODEV;
	}
	/* Each priority a class of its own, strict order: what 802.1Qaz calls the state without ETS */
	for (priority = 0; priority < IEEE_8021QAZ_MAX_TCS; priority++) {
		ets.prio_tc[priority] = priority;
		ets.tc_tsa[priority] = IEEE_8021QAZ_TSA_STRICT;
	}
	rtnl_lock();
	if (card->dcbnl_ops) { /* the real thing is there: leave it alone */
		rtnl_unlock();
		dev_put(card);
		return -EBUSY;
	}
	card_ethtool = card->ethtool_ops;
	if (card_ethtool)
		with_pause = *card_ethtool;
	with_pause.get_pauseparam = get_pause;
	with_pause.set_pauseparam = set_pause;
	card->ethtool_ops = &with_pause;
	card->dcbnl_ops = &dcb_table;
	rtnl_unlock();
	return 0;
}

static void __exit labdcb_exit(void)
{
	rtnl_lock();
	card->dcbnl_ops = NULL;
	card->ethtool_ops = card_ethtool;
	rtnl_unlock();
	dev_put(card);
}

module_init(labdcb_init);
module_exit(labdcb_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Table of DCB and pause settings for an interface of a test machine");
