// SPDX-License-Identifier: GPL-2.0
/*
 * An RDMA device with the user ABI of mlx5, so that the vendor's libmlx5 drives it. It carries
 * nothing out itself: a process, the card, reads about each object from /dev/softcard, maps the
 * owners' memory and the pages of doorbells, and does what a card does.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <net/addrconf.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "device.h"

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An RDMA device of mlx5's user ABI whose card is a process");
MODULE_IMPORT_NS(DMA_BUF);

static char *netdev = "eth0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "the network device whose addresses the card has");

struct soft_device *device;
static struct platform_device *parent;
static struct net_device *network;
static bool port_was_up;

static int query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = 16ull << 32 | 28 << 16 | 1;
	attr->sys_image_guid = ib->node_guid;
	attr->max_mr_size = 1ull << (AREA_SHIFT - 1);
	attr->page_size_cap = PAGE_SIZE;
	attr->vendor_id = 0x2c9;
	attr->vendor_part_id = 4129;
	attr->max_qp = 4096;
	attr->max_qp_wr = most_blocks();
	attr->device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_SRQ_RESIZE | IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_RAW_IP_CSUM | IB_DEVICE_MANAGED_FLOW_STEERING;
	attr->raw_packet_caps = IB_RAW_PACKET_CAP_IP_CSUM;
	attr->max_send_sge = 30;
	attr->max_recv_sge = 32;
	attr->max_sge_rd = 30;
	attr->max_cq = 4096;
	attr->max_cqe = MAX_CQE - 1;
	attr->max_mr = 1 << 16;
	attr->max_pd = 4096;
	attr->max_qp_rd_atom = 16;
	attr->max_res_rd_atom = 16 * 4096;
	attr->max_qp_init_rd_atom = 16;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->max_srq = 4096;
	attr->max_srq_wr = MAX_ENTRIES - 1;
	attr->max_srq_sge = 31;
	attr->max_pkeys = 1;
	attr->max_ah = 4096;
	attr->local_ca_ack_delay = 16;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	if (udata && udata->outlen) {
		struct mlx5_ib_query_device_resp answer = {};
		size_t size = min(udata->outlen, sizeof(answer));

		answer.response_length = size;
		return ib_copy_to_udata(udata, &answer, size);
	}
	return 0;
}

static bool port_is_up(void)
{
	return netif_running(network) && netif_carrier_ok(network);
}

static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	bool up = port_is_up();

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = 64;
	attr->pkey_tbl_len = 1;
	attr->ip_gids = true;
	attr->active_speed = IB_SPEED_EDR;
	attr->active_width = IB_WIDTH_4X;
	attr->max_msg_sz = 1u << 30;
	attr->max_vl_num = 1;
	return 0;
}

static int port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = 64;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = 0xffff;
	return 0;
}

static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static void firmware(struct ib_device *ib, char *text)
{
	strscpy(text, "16.28.1", IB_FW_VERSION_NAME_MAX);
}

static int alloc_context(struct ib_ucontext *context, struct ib_udata *udata)
{
	static atomic_t contexts;
	struct mlx5_ib_alloc_ucontext_req_v2 wanted = {};
	struct mlx5_ib_alloc_ucontext_resp answer = {};
	int error = ib_copy_from_udata(&wanted, udata, min(sizeof(wanted), udata->inlen));

	if (error)
		return error;
	/* Older libraries map registers by number. */
	if (!(wanted.lib_caps & MLX5_LIB_CAP_DYN_UAR))
		return -EOPNOTSUPP;
	if (wanted.flags & ~MLX5_IB_ALLOC_UCTX_DEVX)
		return -EOPNOTSUPP;
	if (!card_ready || READ_ONCE(card_failed))
		return -EIO;
	container_of(context, struct soft_context, ib)->has_devx = wanted.flags & MLX5_IB_ALLOC_UCTX_DEVX;
	container_of(context, struct soft_context, ib)->number = atomic_inc_return(&contexts);
	answer.qp_tab_size = MAX_NUMBER + 1;
	if (!(card_flags & SOFTCARD_NO_WRITE_COMBINING))
		answer.bf_reg_size = 512;
	answer.cache_line_size = 64;
	answer.max_sq_desc_sz = 1024;
	answer.max_rq_desc_sz = 512;
	answer.max_send_wqebb = most_blocks();
	answer.max_recv_wr = MAX_ENTRIES;
	answer.max_srq_recv_wr = MAX_ENTRIES;
	answer.num_ports = 1;
	answer.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
	answer.log_uar_size = PAGE_SHIFT;
	answer.num_uars_per_page = 1;
	answer.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
	answer.response_length = min(udata->outlen, sizeof(answer));
	return ib_copy_to_udata(udata, &answer, answer.response_length);
}

static void dealloc_context(struct ib_ucontext *context)
{
}

static const struct ib_device_ops operations = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_MLX5,
	.uverbs_abi_ver = MLX5_IB_UVERBS_ABI_VERSION,

	.add_gid = add_gid,
	.alloc_ucontext = alloc_context,
	.dealloc_ucontext = dealloc_context,
	.del_gid = del_gid,
	.get_dev_fw_str = firmware,
	.get_link_layer = link_layer,
	.get_port_immutable = port_immutable,
	.mmap = map_uar,
	.mmap_free = free_uar,
	.query_device = query_device,
	.query_pkey = query_pkey,
	.query_port = query_port,

	INIT_RDMA_OBJ_SIZE(ib_ucontext, soft_context, ib),
};

/* Reports that the port went down or came up, as its network device did: the lock of networking is held. */
static int network_event(struct notifier_block *block, unsigned long what, void *info)
{
	struct ib_event event = { .device = &device->ib, .element.port_num = 1 };
	bool up = port_is_up();

	if (netdev_notifier_info_to_dev(info) != network || up == port_was_up)
		return NOTIFY_DONE;
	port_was_up = up;
	event.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
	ib_dispatch_event(&event);
	return NOTIFY_DONE;
}

static struct notifier_block network_events = { .notifier_call = network_event };

static int make_device(void)
{
	int error;

	network = dev_get_by_name(&init_net, netdev);
	if (!network)
		return -ENODEV;
	device = ib_alloc_device(soft_device, ib);
	if (!device) {
		dev_put(network);
		return -ENOMEM;
	}
	device->ib.node_type = RDMA_NODE_IB_CA;
	device->ib.phys_port_cnt = 1;
	device->ib.num_comp_vectors = 1;
	device->ib.driver_def = softcard_definitions;
	addrconf_addr_eui48((u8 *)&device->ib.node_guid, network->dev_addr);
	strscpy(device->ib.node_desc, "softcard", sizeof(device->ib.node_desc));
	ib_set_device_ops(&device->ib, &operations);
	ib_set_device_ops(&device->ib, &flow_operations);
	ib_set_device_ops(&device->ib, &mad_operations);
	ib_set_device_ops(&device->ib, &memory_operations);
	ib_set_device_ops(&device->ib, &queue_operations);
	ib_set_device_ops(&device->ib, &pair_operations);
	error = ib_device_set_netdev(&device->ib, network, 1);
	if (!error)
		error = ib_register_device(&device->ib, "mlx5_%d", &parent->dev);
	if (error) {
		ib_dealloc_device(&device->ib);
		dev_put(network);
	}
	return error;
}

static void remove_device(void)
{
	ib_unregister_device(&device->ib);
	stop_messages();
	ib_dealloc_device(&device->ib);
	dev_put(network);
}

static int __init start(void)
{
	int error;

	parent = platform_device_register_simple("softcard", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	error = dma_coerce_mask_and_coherent(&parent->dev, DMA_BIT_MASK(64));
	if (!error)
		error = make_device();
	if (error)
		goto no_device;
	error = start_card();
	if (error)
		goto no_card;
	port_was_up = port_is_up();
	error = register_netdevice_notifier(&network_events);
	if (!error)
		return 0;
	stop_card();
no_card:
	remove_device();
no_device:
	platform_device_unregister(parent);
	return error;
}

static void __exit stop(void)
{
	unregister_netdevice_notifier(&network_events);
	stop_card();
	remove_device();
	platform_device_unregister(parent);
}

module_init(start);
module_exit(stop);
