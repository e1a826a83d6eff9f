#!/bin/bash
# A machine that is thrown away: own mounts, processes and network. $1: this package; $2: a folder; $3: after how many lines of the removal
# it is killed, 0 for never; then the removal's own arguments. Says what differs from the machine before there was a node on it.
set -eu
package=$1 work=$2 kills=$3
shift 3
# What it removes would be the real machine's.
if [ "$(readlink /proc/self/ns/mnt)" = "$HOST_MNT" ] || [ "$(readlink /proc/self/ns/net)" = "$HOST_NET" ] || [ $$ != 1 ]; then
  echo "not in a throw-away root" >&2
  exit 99
fi
root=$work/root fakes=$work/fakes log=$work/log
mkdir -p "$fakes" /var/run/wireguard "$root"/{data/{certs,admin,run},etc/{kubernetes/enc,cni/net.d,dnsmasq.d,haproxy,systemd/system},var/lib/kubelet/pods,volumes}
mount -t tmpfs tmpfs /var/run/wireguard
mount -t tmpfs tmpfs /usr/local/sbin
for program in systemctl reboot kubeadm ufw; do
  printf '#!/bin/sh\necho %s "$@" >>%s\n' "$program" "$log" >/usr/local/sbin/$program
  chmod 755 /usr/local/sbin/$program
done
echo "rm -f $root/etc/kubernetes/kubelet.conf" >>/usr/local/sbin/kubeadm
# None of them is to reach the real one by its whole path.
for program in /usr/bin/systemctl /usr/sbin/reboot; do
  if [ -e $program ]; then mount --bind /usr/local/sbin/${program##*/} $program; fi
done
ip link set lo up

state() {
  (cd "$root" && find . -mindepth 1 | sort)
  cut -d' ' -f5 /proc/self/mountinfo | grep "^$root" || true
  ip -o link show | sed 's/^[0-9]*: //'
  ip -4 route show table all
  nft list ruleset
}

ip link add other0 type veth peer name other1
ip addr add 10.9.9.1/24 dev other0
ip link set other0 up
ip route add 10.55.0.0/16 dev other0 proto 99
ip route add local 10.77.0.0/24 dev lo table local proto 99
nft add table ip nat
nft add chain ip nat DOCKER
nft add rule ip nat DOCKER iifname docker0 return
echo '{}' >"$root/etc/cni/net.d/10-other.conflist"
echo no-hosts >"$root/etc/dnsmasq.d/other.conf"
echo unit >"$root/etc/systemd/system/other.service"
echo mine >"$root/data/notes.txt"
echo mine >"$root/data/certs2"
mkdir "$root/volumes/foreign"
mount -t tmpfs tmpfs "$root/volumes/foreign"
rm -rf "$root"/data/{certs,admin,run}
mkdir -p "$root/var/lib/kubelet/pods/1/v"
state >"$work/before"

mkdir -p "$root"/data/{certs/1,admin,run}
for file in certs/1/mtls.key journal.db journal.db-wal audit.log audit.log.1 node-identity.json lock sealing.key view.db enrolment.json; do
  echo ours >"$root/data/$file"
done
(umask 077 && wg genkey >"$root/data/overlay.key")
setsid --fork --wait wireguard-go wg0 >/dev/null 2>&1
wg set wg0 private-key "$root/data/overlay.key"
ip addr add 10.78.0.1/16 dev wg0
ip link set wg0 up
ip route add 10.44.0.0/16 dev wg0 proto 201
ip route add local 10.66.0.0/16 dev lo table local proto 202
echo ours >"$root/etc/systemd/system/holdfast-agent.service"
echo joined >"$root/etc/kubernetes/kubelet.conf"
echo ours >"$root/etc/kubernetes/enc/cert-upload-key.txt"
mount -t tmpfs tmpfs "$root/var/lib/kubelet/pods/1/v"
printf 'no-resolv\n' >"$root/etc/dnsmasq.d/runos.conf"
digest=$(sha256sum "$root/etc/dnsmasq.d/runos.conf" | cut -d' ' -f1)
printf '{"served":{"digest":"%s","mark":"m","boot":"b","startedAt":"1"}}\n' "$digest" >"$root/data/dnsmasq.json"
printf 'global\n    description holdfast 0123456789abcdef\n' >"$root/etc/haproxy/haproxy.cfg"

remove=("$package/bin/holdfast" "$@" --yes --root "$root" --data-dir /data)
if [ "$kills" != 0 ]; then
  exec 3< <(exec "${remove[@]}" 2>&1 >/dev/null)
  victim=$!
  for ((line = 0; line < kills; line++)); do read -r -u 3 _ || true; done
  kill -9 "$victim" 2>/dev/null || true
  exec 3<&-
fi
code=0
"${remove[@]}" >"$work/out" 2>"$work/err" || code=$?
state >"$work/after"
echo "exit $code"
diff "$work/before" "$work/after" || true
