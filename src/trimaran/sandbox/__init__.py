"""A small real OpenStack on one machine, for the demo, the tests and the benchmarks.

The control plane is real (Keystone, Glance, Placement, Neutron, Cinder, Nova,
Barbican from PyPI at pinned versions, on MariaDB and RabbitMQ); only what needs
hardware or a kernel is stood in for: a virt driver, an ML2 driver and a volume
driver under ``lib/``.  No container, systemd, kernel module or name space is used,
so that it runs wherever Debian's packages can be installed.
"""
