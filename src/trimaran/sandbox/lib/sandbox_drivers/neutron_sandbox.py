# mypy: ignore-errors
"""Neutron drivers that stand in for the agents.

``SandboxMechanismDriver`` binds each port that has a host to its first segment and
marks it ACTIVE at once.  ``SandboxAgents`` (a service plugin) does what DHCP and L3
agents would have reported: router ports become ACTIVE, an associated floating IP
ACTIVE and a free one DOWN.
"""

from neutron.services.qos.drivers.openvswitch import driver as ovs_qos
from neutron.services.trunk.drivers import base as trunk_base
from neutron_lib import constants
from neutron_lib import context as n_context
from neutron_lib.api.definitions import portbindings
from neutron_lib.callbacks import events, registry, resources
from neutron_lib.plugins import constants as plugin_constants
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api
from neutron_lib.services import base as service_base
from neutron_lib.services.qos import base as qos_base
from neutron_lib.services.trunk import constants as trunk_constants
from oslo_log import log

LOG = log.getLogger(__name__)

ROUTER_OWNERS = (
    constants.DEVICE_OWNER_ROUTER_INTF,
    constants.DEVICE_OWNER_ROUTER_GW,
    constants.DEVICE_OWNER_ROUTER_SNAT,
    constants.DEVICE_OWNER_DVR_INTERFACE,
    constants.DEVICE_OWNER_HA_REPLICATED_INT,
)


class SandboxQos(qos_base.DriverBase):
    """Says that every QoS rule type is supported, so policies apply to bound ports."""

    def __init__(self):
        super().__init__(
            name="sandbox",
            vif_types=[portbindings.VIF_TYPE_OVS, portbindings.VIF_TYPE_UNBOUND],
            vnic_types=[portbindings.VNIC_NORMAL],
            supported_rules=ovs_qos.SUPPORTED_RULES,
            requires_rpc_notifications=False,
        )


class SandboxTrunk(trunk_base.DriverBase):
    """Lets the trunk plugin load; trunks and their subports are records only."""

    is_loaded = True

    def __init__(self):
        super().__init__(
            "sandbox",
            (portbindings.VIF_TYPE_OVS,),
            (trunk_constants.SEGMENTATION_TYPE_VLAN,),
            can_trunk_bound_port=True,
        )

    @registry.receives(resources.TRUNK_PLUGIN, [events.AFTER_INIT])
    def register(self, resource, event, trigger, payload=None):
        super().register(resource, event, trigger, payload=payload)


class SandboxMechanismDriver(api.MechanismDriver):
    _others = None

    def initialize(self):
        # kept in a class attribute: the callback registry holds weak references only
        if SandboxMechanismDriver._others is None:
            SandboxMechanismDriver._others = (SandboxQos(), SandboxTrunk())

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def check_vlan_transparency(self, context):
        return True

    def check_vlan_qinq(self, context):
        return True

    def bind_port(self, context):
        for segment in context.segments_to_bind:
            context.set_binding(
                segment[api.ID],
                portbindings.VIF_TYPE_OVS,
                {
                    portbindings.CAP_PORT_FILTER: True,
                    portbindings.OVS_HYBRID_PLUG: False,
                    portbindings.VIF_DETAILS_CONNECTIVITY: self.connectivity,
                },
                status=constants.PORT_STATUS_ACTIVE,
            )
            return


@registry.has_registry_receivers
class SandboxAgents(service_base.ServicePluginBase):
    supported_extension_aliases = []

    @classmethod
    def get_plugin_type(cls):
        return "SANDBOX_AGENTS"

    def get_plugin_description(self):
        return "Reports what DHCP and L3 agents would report."

    @staticmethod
    def _port_active(port_id):
        directory.get_plugin().update_port_status(
            n_context.get_admin_context(), port_id, constants.PORT_STATUS_ACTIVE
        )

    @registry.receives(resources.PORT, [events.AFTER_CREATE, events.AFTER_UPDATE])
    def _port_changed(self, resource, event, trigger, payload):
        port = payload.latest_state
        if (
            port.get("device_owner") in ROUTER_OWNERS
            and port.get("status") != constants.PORT_STATUS_ACTIVE
        ):
            self._quietly(self._port_active, port["id"])

    @registry.receives(resources.FLOATING_IP, [events.AFTER_CREATE, events.AFTER_UPDATE])
    def _floating_ip_changed(self, resource, event, trigger, payload):
        floating_id = payload.resource_id or payload.latest_state.get("id")
        self._quietly(self._sync_floating_ip, floating_id)

    @staticmethod
    def _sync_floating_ip(floating_id):
        context = n_context.get_admin_context()
        router = directory.get_plugin(plugin_constants.L3)
        row = router.get_floatingip(context, floating_id)
        wanted = (
            constants.FLOATINGIP_STATUS_ACTIVE
            if row.get("router_id")
            else constants.FLOATINGIP_STATUS_DOWN
        )
        if row["status"] != wanted:
            router.update_floatingip_status(context, floating_id, wanted)

    @staticmethod
    def _quietly(function, *args):
        try:
            function(*args)
        except Exception:
            LOG.exception("sandbox agent emulation failed")
