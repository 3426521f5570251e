#!/bin/sh
# Start one daemon of Trimaran: start_service.sh SERVICE [OPTION…]
#
# With BOOTSTRAP or KOLLA_BOOTSTRAP set, even to nothing, the service's database
# is migrated and nothing is started, as a deployment tool's bootstrap job
# expects.  Migrating is safe to run from several containers at once.
set -eu

service=${1:?"name a service: console, ec2-api, ec2-metadata, ec2-s3, magnum-api or magnum-conductor"}
shift

case "$service" in
    console) hull=console ;;
    ec2-*) hull=ec2 ;;
    magnum-*) hull=magnum ;;
    *) echo "unknown service: $service" >&2; exit 2 ;;
esac

if [ -n "${BOOTSTRAP+set}${KOLLA_BOOTSTRAP+set}" ]; then
    exec trimaran db upgrade "$hull"
fi
exec trimaran "$service" "$@"
