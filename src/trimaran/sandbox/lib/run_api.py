# mypy: ignore-errors
"""Serve one OpenStack API with waitress: one process, a few threads.

Runs in the services' environment: run_api.py SERVICE HOST PORT THREADS [OPTION...],
where the options are for the service's own option parser.
"""

import importlib
import logging
import os
import sys

MODULES = {
    "keystone": "keystone.wsgi.api",
    "glance": "glance.wsgi.api",
    "placement": "placement.wsgi.api",
    "neutron": "neutron.wsgi.api",
    "cinder": "cinder.wsgi.api",
    "nova": "nova.wsgi.osapi_compute",
    "nova-metadata": "nova.wsgi.metadata",
}


def application(service):
    if service == "barbican":
        # barbican.wsgi.api has /etc/barbican wired in: load the paste file where it is
        from paste import deploy

        return deploy.loadapp("config:" + os.environ["SANDBOX_PASTE"])
    return importlib.import_module(MODULES[service]).application


def main():
    service, host, port, threads = sys.argv[1:5]
    sys.argv = [service + "-api", *sys.argv[5:]]
    app = application(service)
    import waitress

    # it warns for each request that finds no idle thread
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    waitress.serve(
        app,
        host=host,
        port=int(port),
        threads=int(threads),
        ident=None,
        channel_timeout=300,
        connection_limit=200,
        backlog=256,
        max_request_body_size=64 * 1024**3,
        clear_untrusted_proxy_headers=False,
        asyncore_use_poll=True,
    )


if __name__ == "__main__":
    main()
