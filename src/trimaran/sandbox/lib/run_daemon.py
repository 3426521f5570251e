# mypy: ignore-errors
"""Run one OpenStack daemon in one process (the stock launchers fork a worker each).

Runs in the services' environment: run_daemon.py NAME [OPTION...].  Privileged calls
are made in this process instead of a daemon started with sudo: our drivers need none
that an ordinary user could not make.
"""

import importlib
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def in_process(*contexts):
    for context in contexts:
        context.set_client_mode(False)


def wait_for_cloud():
    """Wait until users and Placement are there: what is imported by then takes no time."""
    while not os.path.exists(os.environ["SANDBOX_CLOUD_READY"]):
        time.sleep(0.1)


def nova(daemon):
    # before anything else of nova: it chooses threads over eventlet
    command = importlib.import_module("nova.cmd." + daemon)
    import nova.privsep
    import nova.virt
    from nova import service

    # nova loads only drivers that are inside nova.virt
    nova.virt.__path__.append(os.path.join(HERE, "nova_virt"))
    in_process(nova.privsep.sys_admin_pctxt)
    stock = service.serve
    service.serve = lambda server, workers=None, no_fork=False: stock(
        server, workers=1, no_fork=True
    )
    wait_for_cloud()
    command.main()


def cinder_volume():
    from cinder import utils

    stock = utils.execute
    # before the rest of cinder takes it as a default: else `sudo cinder-rootwrap` for
    # what needs no root with our driver (qemu-img on our own files)
    utils.execute = lambda *words, **options: stock(*words, **options | {"run_as_root": False})
    from cinder import privsep, service
    from cinder.cmd import volume
    from os_brick import privileged
    from oslo_config import cfg
    from oslo_service import service as oslo_service

    service.process_launcher = lambda: oslo_service.ServiceLauncher(cfg.CONF)
    in_process(privsep.sys_admin_pctxt, privileged.default)
    wait_for_cloud()
    volume.main()


def cinder_scheduler():
    from cinder.cmd import scheduler

    wait_for_cloud()
    scheduler.main()


def main():
    name = sys.argv[1]
    sys.argv = [name, *sys.argv[2:]]
    if name.startswith("nova-"):
        nova(name.removeprefix("nova-"))
    elif name == "cinder-volume":
        cinder_volume()
    elif name == "cinder-scheduler":
        cinder_scheduler()
    else:
        sys.exit("unknown daemon " + name)


if __name__ == "__main__":
    main()
