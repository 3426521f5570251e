# mypy: ignore-errors
"""Make nova's schemas and cells in one process (each nova-manage takes 4 s to import).

Runs in the services' environment: nova_setup.py CONFIG CELL0_URL.  The one compute
host is mapped to its cell ahead of time: its name is known, and a host that reports
later needs no discovery.
"""

import os
import sys

os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "1"

from nova.cmd import manage  # noqa: I001  first: it decides about eventlet
from nova import config
from nova import context as nova_context
from nova import objects
from nova.db import migration
from oslo_config import cfg
from oslo_log import log


def main():
    conf, cell0 = sys.argv[1:]
    config.parse_args(["nova-manage", "--config-file", conf])
    log.setup(cfg.CONF, "nova")
    objects.register_all()
    cells = manage.CellV2Commands()
    migration.db_sync(database="api")
    cells.map_cell0(cell0)
    manage.DbCommands().sync()
    # 2: there is one already
    if cells.create_cell(name="cell1") not in (0, 2, None):
        return 1
    admin = nova_context.get_admin_context()
    known = {mapping.host for mapping in objects.HostMappingList.get_all(admin)}
    for cell in objects.CellMappingList.get_all(admin):
        if cell.name == "cell1" and cfg.CONF.host not in known:
            objects.HostMapping(admin, host=cfg.CONF.host, cell_mapping=cell).create()
    return 0


if __name__ == "__main__":
    sys.exit(main())
