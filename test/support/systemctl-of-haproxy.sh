#!/bin/sh
# A systemctl that has one unit, haproxy.service, which runs with the files below @ROOT@ as Debian's runs with those of the machine.
cd '@ROOT@' || exit 1
config=etc/haproxy/haproxy.cfg
pid=run/haproxy.pid
runs() { [ -s "$pid" ] && kill -0 "$(cat "$pid")" 2>/dev/null; }
for unit; do :; done
case "$1" in
show)
  load=not-found active=inactive sub=dead
  if [ "$unit" = haproxy.service ]; then
    load=loaded
    if runs; then active=active sub=running; fi
  fi
  echo "ExecMainStartTimestampMonotonic=$(cat run/started 2>/dev/null || echo 0)"
  printf 'LoadState=%s\nActiveState=%s\nSubState=%s\n' $load $active $sub
  ;;
restart)
  if runs; then
    kill "$(cat "$pid")"
    while runs; do sleep 0.05; done
  fi
  date +%s%6N >run/started
  echo restart >>run/calls
  exec haproxy -W -D -f "$PWD/$config" -p "$PWD/$pid"
  ;;
reload)
  runs || {
    echo 'haproxy.service is not active, cannot reload.' >&2
    exit 1
  }
  haproxy -c -q -f "$config" || exit 1
  echo reload >>run/calls
  kill -USR2 "$(cat "$pid")"
  ;;
esac
