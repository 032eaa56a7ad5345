// SPDX-License-Identifier: GPL-2.0
/* Rules by which frames get to queue pairs for raw packets. */
#include "device.h"

/* mlx5_ib has this limit, too. */
#define MAX_PRIORITY 15

struct soft_flow {
	struct ib_flow ib;
	u32 number;
};

static DEFINE_XARRAY_ALLOC1(flows);
static u32 next_flow;

#define SET(field, from)						\
	do {								\
		BUILD_BUG_ON(sizeof(flow->value.field) < sizeof(val->from)); \
		memcpy(&flow->value.field, &val->from, sizeof(val->from)); \
		memcpy(&flow->mask.field, &mask->from, sizeof(mask->from)); \
	} while (0)

static void set_type(struct softcard_flow *flow, u16 type)
{
	__be16 value = cpu_to_be16(type);

	memcpy(flow->value.ether_type, &value, sizeof(value));
	memset(flow->mask.ether_type, 0xff, sizeof(value));
}

static int add_spec(struct softcard_flow *flow, const union ib_flow_spec *spec)
{
	switch (spec->type) {
	case IB_FLOW_SPEC_ETH: {
		const struct ib_flow_eth_filter *val = &spec->eth.val, *mask = &spec->eth.mask;

		SET(dst_mac, dst_mac);
		SET(src_mac, src_mac);
		if (mask->ether_type)
			SET(ether_type, ether_type);
		if (mask->vlan_tag) {
			SET(tag, vlan_tag);
			flow->value.is_tagged = flow->mask.is_tagged = 1;
		}
		return 0;
	}
	case IB_FLOW_SPEC_IPV4: {
		const struct ib_flow_ipv4_filter *val = &spec->ipv4.val, *mask = &spec->ipv4.mask;

		if (mask->tos || mask->ttl || mask->flags)
			return -EOPNOTSUPP;
		set_type(flow, ETH_P_IP);
		SET(src_ip, src_ip);
		SET(dst_ip, dst_ip);
		if (mask->proto)
			SET(protocol, proto);
		return 0;
	}
	case IB_FLOW_SPEC_IPV6: {
		const struct ib_flow_ipv6_filter *val = &spec->ipv6.val, *mask = &spec->ipv6.mask;

		if (mask->flow_label || mask->traffic_class || mask->hop_limit)
			return -EOPNOTSUPP;
		set_type(flow, ETH_P_IPV6);
		SET(src_ip, src_ip);
		SET(dst_ip, dst_ip);
		if (mask->next_hdr)
			SET(protocol, next_hdr);
		return 0;
	}
	case IB_FLOW_SPEC_TCP:
	case IB_FLOW_SPEC_UDP: {
		const struct ib_flow_tcp_udp_filter *val = &spec->tcp_udp.val, *mask = &spec->tcp_udp.mask;

		flow->value.protocol = spec->type == IB_FLOW_SPEC_TCP ? IPPROTO_TCP : IPPROTO_UDP;
		flow->mask.protocol = 0xff;
		SET(src_port, src_port);
		SET(dst_port, dst_port);
		return 0;
	}
	default:
		return -EOPNOTSUPP;
	}
}

static struct ib_flow *create_flow(struct ib_qp *qp, struct ib_flow_attr *attr, struct ib_udata *udata)
{
	struct softcard_request request = {};
	const void *spec = attr->flows;
	struct soft_flow *flow;
	int error = 0, i;

	if (qp->qp_type != IB_QPT_RAW_PACKET || attr->type != IB_FLOW_ATTR_NORMAL || attr->flags)
		return ERR_PTR(-EOPNOTSUPP);
	if (attr->port != 1)
		return ERR_PTR(-EINVAL);
	if (attr->priority > MAX_PRIORITY)
		return ERR_PTR(-ENOSPC);
	for (i = 0; i < attr->num_of_specs && !error; i++) {
		error = add_spec(&request.flow, spec);
		spec += ((const union ib_flow_spec *)spec)->size;
	}
	if (error)
		return ERR_PTR(error);
	request.flow.qp = qp->qp_num;
	request.flow.priority = attr->priority;
	flow = kzalloc(sizeof(*flow), GFP_KERNEL);
	if (!flow)
		return ERR_PTR(-ENOMEM);
	if (xa_alloc_cyclic(&flows, &flow->number, flow, XA_LIMIT(1, MAX_NUMBER), &next_flow, GFP_KERNEL) < 0) {
		error = -ENOMEM;
		goto no_number;
	}
	error = ask(SOFTCARD_NEW_FLOW, flow->number, &request);
	if (!error)
		return &flow->ib;
	xa_erase(&flows, flow->number);
no_number:
	kfree(flow);
	return ERR_PTR(error);
}

static int destroy_flow(struct ib_flow *ib)
{
	struct soft_flow *flow = container_of(ib, struct soft_flow, ib);

	ask(SOFTCARD_FREE_FLOW, flow->number, NULL);
	xa_erase(&flows, flow->number);
	kfree(flow);
	return 0;
}

const struct ib_device_ops flow_operations = {
	.create_flow = create_flow,
	.destroy_flow = destroy_flow,
};
