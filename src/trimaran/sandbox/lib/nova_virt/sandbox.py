# mypy: ignore-errors
"""A Nova virt driver: nova's own fake driver plus what an API-level cloud needs.

* a snapshot uploads a small real image (the stock fake driver leaves it queued);
* power states survive a restart of nova-compute, in one JSON file;
* a stable node id, without which nova-compute refuses its second start;
* resize and cold migration to the same host, so that one nova-compute is enough;
* room for thousands of servers, and a console log with the server's name in it.
"""

import io
import json
import os
import threading
import time

import nova.conf
from nova import exception
from nova.compute import power_state, task_states
from nova.image import glance
from nova.virt import fake, hardware, node

CONF = nova.conf.CONF
SNAPSHOT_SIZE = 65536


class SandboxDriver(fake.FakeDriverWithCaching):
    capabilities = dict(
        fake.FakeDriver.capabilities,
        supports_migrate_to_same_host=True,
        supports_bfv_rescue=True,
        supports_image_type_qcow2=True,
        supports_attach_interface=True,
    )
    vcpus = 10000
    memory_mb = 16 * 1024 * 1024
    local_gb = 1000000

    def __init__(self, virtapi, read_only=False):
        super().__init__(virtapi, read_only)
        self._lock = threading.Lock()
        self._file = os.path.join(CONF.state_path, f"sandbox-instances-{CONF.host}.json")

    # -- the node --------------------------------------------------------
    def get_available_resource(self, nodename):
        resources = super().get_available_resource(nodename)
        resources["uuid"] = node.get_local_node_uuid()
        return resources

    def get_nodenames_by_uuid(self, refresh=False):
        return {node.get_local_node_uuid(): self.get_available_nodes()[0]}

    def get_host_uptime(self):
        with open("/proc/uptime") as handle:
            minutes = int(float(handle.read().split()[0])) // 60
        load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
        clock = f"{minutes // 60 % 24:2d}:{minutes % 60:02d}"
        return (
            f" {time.strftime('%H:%M:%S')} up {minutes // 1440} days, {clock},"
            f"  0 users,  load average: {load}"
        )

    # -- power states that survive a restart -----------------------------
    def init_host(self, host):
        super().init_host(host)
        try:
            with open(self._file) as handle:
                saved = json.load(handle)
        except (FileNotFoundError, ValueError):
            saved = {}
        for uuid, item in saved.items():
            self.instances[uuid] = fake.FakeInstance(item["name"], item["state"], uuid)

    def _save(self):
        with self._lock:
            known = {
                uuid: {"name": item.name, "state": item.state}
                for uuid, item in list(self.instances.items())
            }
            temporary = self._file + ".new"
            with open(temporary, "w") as handle:
                json.dump(known, handle)
            os.replace(temporary, self._file)

    def _set(self, instance, state):
        if instance.uuid not in self.instances:
            raise exception.InstanceNotFound(instance_id=instance.uuid)
        self.instances[instance.uuid].state = state
        self._save()

    def spawn(self, *args, **kwargs):
        super().spawn(*args, **kwargs)
        self._save()

    def destroy(self, *args, **kwargs):
        super().destroy(*args, **kwargs)
        self._save()

    def finish_revert_migration(self, *args, **kwargs):
        super().finish_revert_migration(*args, **kwargs)
        self._save()

    def power_on(self, *args, **kwargs):
        super().power_on(*args, **kwargs)
        self._save()

    def power_off(self, *args, **kwargs):
        super().power_off(*args, **kwargs)
        self._save()

    def pause(self, instance):
        self._set(instance, power_state.PAUSED)

    def unpause(self, instance):
        self._set(instance, power_state.RUNNING)

    def suspend(self, context, instance):
        self._set(instance, power_state.SUSPENDED)

    def resume(self, context, instance, *args, **kwargs):
        self._set(instance, power_state.RUNNING)

    def rescue(self, context, instance, *args, **kwargs):
        self._set(instance, power_state.RUNNING)

    def get_info(self, instance, use_cache=True):
        found = self.instances.get(instance.uuid)
        if found is None:
            raise exception.InstanceNotFound(instance_id=instance.uuid)
        return hardware.InstanceInfo(state=found.state)

    def detach_interface(self, context, instance, vif):
        # plugged interfaces are in memory only: one plugged before a restart is unknown
        self._interfaces.pop(vif["id"], None)

    # -- images ----------------------------------------------------------
    def snapshot(self, context, instance, image_id, update_task_state):
        if instance.uuid not in self.instances:
            raise exception.InstanceNotRunning(instance_id=instance.uuid)
        update_task_state(task_state=task_states.IMAGE_PENDING_UPLOAD)
        api = glance.API()
        image = api.get(context, image_id)
        disk_format = image.get("disk_format")
        if disk_format not in ("raw", "ami", "ari", "aki"):
            disk_format = "raw"
        metadata = {
            "status": "active",
            "disk_format": disk_format,
            "container_format": image.get("container_format") or "bare",
            "name": image["name"],
            "properties": {
                "image_location": "snapshot",
                "image_state": "available",
                "owner_id": instance.project_id,
                "ramdisk_id": instance.ramdisk_id or "",
                "kernel_id": instance.kernel_id or "",
            },
        }
        update_task_state(
            task_state=task_states.IMAGE_UPLOADING,
            expected_state=task_states.IMAGE_PENDING_UPLOAD,
        )
        text = f"sandbox snapshot of {instance.uuid}\n".encode()
        data = io.BytesIO(text.ljust(SNAPSHOT_SIZE, b"\0"))
        api.update(context, image_id, metadata, data=data, purge_props=False)

    # -- consoles --------------------------------------------------------
    def get_console_output(self, context, instance):
        name = instance.hostname or instance.uuid
        return f"[    0.000000] Linux version 6.1.0 (sandbox)\n{name} login: \n".encode()
