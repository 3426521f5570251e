#!/bin/bash
# The whole console in one container: database, API, nginx with the front end.
#
# Each step waits for the one before it: nginx is started when the API answers,
# so that nobody meets a 502 in between.  Either process's end ends the
# container.  Variables:
#   LISTEN_ADDRESS              where nginx listens (0.0.0.0:9999)
#   SSL_CERTFILE, SSL_KEYFILE   TLS, when both are set
#   STATIC_PATH                 the front end, if it is not the package skyline_console
#   CONSOLE_LANGUAGE            what it speaks to browsers that have not chosen (en)
#   NGINX_CONF                  where nginx's configuration is written (/etc/nginx/nginx.conf)
#   NGINX_RUN_DIR               pid and temporary files, for an nginx without root
#   NGINX_LOG_DIR               nginx's logs (option default.log_dir)
#   API_PORT                    where the API listens on the loopback (9998)
#   CATALOG_SECONDS             look for a changed catalog that often; 0: never (300)
#   BOOTSTRAP, KOLLA_BOOTSTRAP  when set, even if empty: migrate the database, then end
set -euo pipefail

conf=${NGINX_CONF:-/etc/nginx/nginx.conf}
run=${NGINX_RUN_DIR:-}
port=${API_PORT:-9998}
seconds=${CATALOG_SECONDS:-300}
started=()

finish() {
    trap - TERM INT EXIT
    # nginx first, so that no request reaches an API that is about to end.
    for ((i = ${#started[@]} - 1; i >= 0; i--)); do
        kill -TERM "${started[i]}" 2>/dev/null || true
        wait "${started[i]}" 2>/dev/null || true
    done
}

generate() {
    local file=$1
    shift
    local arguments=(--output-file "$file" --upstream "127.0.0.1:$port")
    arguments+=(--listen-address "${LISTEN_ADDRESS:-0.0.0.0:9999}")
    arguments+=(--language "${CONSOLE_LANGUAGE-en}")
    if [ -n "${SSL_CERTFILE:-}" ] && [ -n "${SSL_KEYFILE:-}" ]; then
        arguments+=(--ssl-certfile "$SSL_CERTFILE" --ssl-keyfile "$SSL_KEYFILE")
    fi
    if [ -n "${STATIC_PATH:-}" ]; then arguments+=(--static-path "$STATIC_PATH"); fi
    if [ -n "${NGINX_LOG_DIR:-}" ]; then arguments+=(--log-dir "$NGINX_LOG_DIR"); fi
    if [ -n "$run" ]; then
        mkdir -p "$run"
        arguments+=(--run-dir "$run")
    fi
    skyline-nginx-generator "${arguments[@]}" "$@"
}

renew() {
    # Beside, tested, then moved: an nginx that starts by itself meanwhile, or a container that
    # is killed here, never finds a file that it cannot use.
    local new=$conf.new
    rm -f "$new"
    # From the old one, the generator knows what has changed.
    if [ -s "$conf" ]; then cp -p "$conf" "$new"; fi
    generate "$new" && nginx -t -q -c "$new" && mv -f "$new" "$conf"
}

answers() {
    # The API's own public path, over the way that nginx takes.
    exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
    printf 'GET /api/v1/config HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
    local status
    read -r -t 5 _ status _ <&3 || return 1
    exec 3>&-
    [ "$status" = 200 ]
}

follow_catalog() {
    # Waiting for a sleep in the background lets a signal in at once.
    trap 'kill $(jobs -p) 2>/dev/null; exit 0' TERM
    trap - EXIT
    while true; do
        sleep "$seconds" &
        wait $!
        local changed=0
        generate "$conf" --diff >/dev/null || changed=$?
        if [ "$changed" = 1 ] && renew; then
            kill -HUP "$1"
        fi
    done
}

trimaran db upgrade console
if [ -n "${BOOTSTRAP+set}${KOLLA_BOOTSTRAP+set}" ]; then
    exit 0
fi

trap finish EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
renew

trimaran console --host 127.0.0.1 --port "$port" "$@" &
api=$!
started+=("$api")
until answers 2>/dev/null; do
    kill -0 "$api" 2>/dev/null || { wait "$api"; exit 1; }
    sleep 0.2
done

nginx -c "$conf" -g 'daemon off;' &
nginx=$!
started+=("$nginx")
if [ "$seconds" != 0 ]; then
    follow_catalog "$nginx" &
    started+=("$!")
fi

# The first of the two to end decides how the container ends.
status=0
wait -n "$api" "$nginx" || status=$?
exit "$((status ? status : 1))"
