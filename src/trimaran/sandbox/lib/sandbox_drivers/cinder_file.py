# mypy: ignore-errors
"""A Cinder volume driver that keeps each volume and snapshot as one sparse raw file.

No kernel device, target daemon or mount is involved, so it works in a plain
container; the data path (image -> volume, volume -> image, clone, snapshot,
extend, revert) is real.  Attaching hands out connection information only.
"""

import contextlib
import os
import subprocess

from cinder import interface
from cinder.image import image_utils
from cinder.volume import driver, volume_utils
from oslo_config import cfg

GIB = 1024**3

OPTS = [
    cfg.StrOpt("sandbox_volume_dir", help="Directory for volume files."),
    cfg.IntOpt("sandbox_capacity_gb", default=10000, help="Capacity to report."),
]
cfg.CONF.register_opts(OPTS, group="backend_defaults")


@interface.volumedriver
class FileDriver(driver.VolumeDriver):
    VERSION = "1.0.0"
    SUPPORTS_ACTIVE_ACTIVE = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(OPTS)
        self.dir = self.configuration.sandbox_volume_dir

    @classmethod
    def get_driver_options(cls):
        return OPTS

    def do_setup(self, context):
        os.makedirs(self.dir, exist_ok=True)

    def check_for_setup_error(self):
        pass

    # -- helpers ---------------------------------------------------------
    def _path(self, obj):
        return os.path.join(self.dir, obj.name)

    @staticmethod
    def _copy(src, dst):
        subprocess.run(["cp", "--sparse=always", "--reflink=auto", src, dst], check=True)

    @staticmethod
    def _resize(path, gib):
        with open(path, "ab") as handle:
            handle.truncate(gib * GIB)

    def local_path(self, volume):
        return self._path(volume)

    # -- volumes ---------------------------------------------------------
    def create_volume(self, volume):
        self._resize(self._path(volume), volume.size)

    def delete_volume(self, volume):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(volume))

    def extend_volume(self, volume, new_size):
        self._resize(self._path(volume), new_size)

    def create_cloned_volume(self, volume, src_vref):
        self._copy(self._path(src_vref), self._path(volume))
        self._resize(self._path(volume), volume.size)

    def retype(self, context, volume, new_type, diff, host):
        return True, None

    def update_migrated_volume(self, ctxt, volume, new_volume, original_volume_status):
        return {"_name_id": new_volume._name_id or new_volume.id, "provider_location": None}

    # -- snapshots -------------------------------------------------------
    def create_snapshot(self, snapshot):
        self._copy(self._path(snapshot.volume), self._path(snapshot))

    def delete_snapshot(self, snapshot):
        self.delete_volume(snapshot)

    def create_volume_from_snapshot(self, volume, snapshot):
        self._copy(self._path(snapshot), self._path(volume))
        self._resize(self._path(volume), volume.size)

    def revert_to_snapshot(self, context, volume, snapshot):
        self._copy(self._path(snapshot), self._path(volume))
        self._resize(self._path(volume), volume.size)

    # -- images ----------------------------------------------------------
    def copy_image_to_volume(self, context, volume, image_service, image_id, disable_sparse=False):
        path = self._path(volume)
        image_utils.fetch_to_raw(
            context, image_service, image_id, path, "1M", size=volume.size, run_as_root=False
        )
        self._resize(path, volume.size)

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        volume_utils.upload_volume(
            context, image_service, image_meta, self._path(volume), volume, run_as_root=False
        )

    # -- exports ---------------------------------------------------------
    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector):
        return {
            "driver_volume_type": "local",
            "data": {"device_path": self._path(volume), "volume_id": volume.id},
        }

    def terminate_connection(self, volume, connector, **kwargs):
        pass

    # -- statistics ------------------------------------------------------
    def _update_volume_stats(self):
        name = self.configuration.safe_get("volume_backend_name") or "sandbox"
        total = self.configuration.sandbox_capacity_gb
        used = sum(os.stat(e.path).st_size for e in os.scandir(self.dir) if e.is_file()) // GIB
        self._stats = {
            "volume_backend_name": name,
            "vendor_name": "sandbox",
            "driver_version": self.VERSION,
            "storage_protocol": "local",
            "pools": [
                {
                    "pool_name": name,
                    "total_capacity_gb": total,
                    "free_capacity_gb": total - used,
                    "provisioned_capacity_gb": used,
                    "allocated_capacity_gb": used,
                    "reserved_percentage": 0,
                    "max_over_subscription_ratio": 20.0,
                    "thin_provisioning_support": True,
                    "thick_provisioning_support": False,
                    "multiattach": True,
                    "QoS_support": False,
                    "location_info": self.dir,
                }
            ],
        }
