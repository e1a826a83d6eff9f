/** What a failure means to whoever asked, whatever the technology: gRPC status and exit code follow from it. */
export type ErrorKind =
  | 'invalid'
  | 'not_found'
  | 'conflict'
  | 'denied'
  | 'unavailable'
  | 'exhausted'
  | 'unimplemented'
  | 'internal';

interface CodeFacts {
  readonly kind: ErrorKind;
  /** Whether the same call can succeed later without anybody's help. */
  readonly retry: boolean;
  /** For people: what to do. */
  readonly remedy: string;
}

/** Every failure that leaves a port or a use case, as `capability.reason`. What follows from a code hangs on the code alone. */
export const errorCodes = {
  'admin.failed': { kind: 'internal', retry: false, remedy: 'look into the log of the daemon' },
  'admin.not_allowed': {
    kind: 'denied',
    retry: false,
    remedy: 'use a certificate of the role that is named: `holdfast cert create NAME --role ROLE --out DIR` makes one',
  },
  'admin.not_offered': {
    kind: 'unimplemented',
    retry: false,
    remedy:
      'ask the daemon that has it, of this version: nodes and instructions are at `holdfast server`, a journal at `holdfast agent`',
  },
  'admin.not_served': {
    kind: 'internal',
    retry: false,
    remedy: 'give the data directory to the user that runs the daemon, and let nothing else stand in its `admin` folder',
  },
  'admin.too_large': { kind: 'exhausted', retry: false, remedy: 'split the manifests: one call takes 64 MiB' },
  'admin.unreachable': {
    kind: 'unavailable',
    retry: true,
    remedy:
      'start the daemon (`holdfast dev`, `server` or `agent`), or name its data directory with --data-dir, or its host with --admin',
  },
  'admin.waited': {
    kind: 'unavailable',
    retry: true,
    remedy: 'look at `holdfast status` for why, or wait longer with --timeout',
  },
  'adoption.file_failed': {
    kind: 'unavailable',
    retry: true,
    remedy: 'mend what is named: rights, free space, or what stands in its place; then run the same command again',
  },
  'adoption.not_found': {
    kind: 'not_found',
    retry: false,
    remedy: 'run it on the machine of the older agent, or register this machine with `holdfast register`',
  },
  'adoption.older_agent': {
    kind: 'conflict',
    retry: false,
    remedy: 'run the line that is named, as root, and then the same command again',
  },
  'adoption.refused': { kind: 'invalid', retry: false, remedy: 'mend what is named, then run the same command again' },
  'adoption.unfinished': {
    kind: 'conflict',
    retry: false,
    remedy: 'end it with the command that is named',
  },
  'agent.already_started': { kind: 'conflict', retry: false, remedy: 'start an agent once' },
  'agent.data_dir_locked': {
    kind: 'conflict',
    retry: false,
    remedy: 'stop the daemon that uses this data directory, or name another with --data-dir',
  },
  'agent.data_dir_unusable': {
    kind: 'invalid',
    retry: false,
    remedy: 'name a folder that this user may make and write in with --data-dir or HOLDFAST_DATA_DIR',
  },
  'agent.duplicate_subsystem': { kind: 'conflict', retry: false, remedy: 'register each subsystem once' },
  'agent.incomplete': { kind: 'invalid', retry: false, remedy: 'make the agent from all parts that it needs' },
  'agent.invalid_subsystem': { kind: 'invalid', retry: false, remedy: 'register a subsystem that has a name' },
  'agent.late_registration': { kind: 'conflict', retry: false, remedy: 'register every subsystem before the start' },
  'agent.not_ready': {
    kind: 'unavailable',
    retry: true,
    remedy: 'look at `holdfast status` for what each subsystem waits for; what is ready serves',
  },
  'agent.other_agent': {
    kind: 'conflict',
    retry: false,
    remedy:
      'stop the other agent of this machine and keep it from starting again, as by `systemctl disable --now`, or leave this one out',
  },
  'agent.successor_failed': {
    kind: 'unavailable',
    retry: true,
    remedy: 'see in the log what the new process said; this one goes on, and SIGUSR2 tries it again',
  },
  'agent.nothing_inherited': {
    kind: 'unavailable',
    retry: true,
    remedy: 'the process before it goes on; see its log, and send it SIGUSR2 to try it again',
  },
  'agent.start_failed': { kind: 'internal', retry: false, remedy: 'mend the cause that is named and start again' },
  'agent.stopped': { kind: 'unavailable', retry: false, remedy: 'start another agent' },
  'agent.timed_out': { kind: 'unavailable', retry: true, remedy: 'look in the log for what it was waiting for' },
  'audit.not_written': { kind: 'unavailable', retry: true, remedy: 'free disk space or mend the disk, then try again' },
  'audit.unreadable': { kind: 'invalid', retry: false, remedy: 'run it as the user that the daemon runs as' },
  'backup.busy': { kind: 'conflict', retry: true, remedy: 'wait until the other archive is made' },
  'backup.invalid': {
    kind: 'invalid',
    retry: false,
    remedy: 'take another archive, one that `holdfast backup` said it had made',
  },
  'backup.not_made': { kind: 'unavailable', retry: true, remedy: 'free disk space for a copy of the stores, then try again' },
  'backup.overtaken': {
    kind: 'conflict',
    retry: true,
    remedy: 'stop every server of this control plane and every other restore, then run it again',
  },
  'backup.servers_running': {
    kind: 'conflict',
    retry: true,
    remedy: 'stop every server of this control plane, then run it again',
  },
  'backup.store_not_empty': {
    kind: 'conflict',
    retry: false,
    remedy: 'take another --etcd-cluster, or --force: what is there is archived first, then replaced',
  },
  'certificate.admin_invalid': { kind: 'invalid', retry: false, remedy: 'look at `holdfast cert create --help`' },
  'certificate.csr_invalid': {
    kind: 'invalid',
    retry: false,
    remedy: 'send a PKCS#10 request in DER, signed with its own key: RSA of 2048 to 4096 bits, P-256, P-384 or Ed25519',
  },
  'certificate.expired': {
    kind: 'denied',
    retry: false,
    remedy: 'register the node again with a new token, unless a clock is wrong: both are named',
  },
  'certificate.failed': { kind: 'internal', retry: false, remedy: 'look into the log of the control plane' },
  'certificate.incomplete': {
    kind: 'invalid',
    retry: false,
    remedy: 'give the server, the account, and a token in HOLDFAST_TOKEN or by --token-file',
  },
  'certificate.no_former_root': {
    kind: 'conflict',
    retry: false,
    remedy: '`holdfast ca list` shows the roots; `holdfast ca rotate` makes another one',
  },
  'certificate.no_machine_id': {
    kind: 'invalid',
    retry: false,
    remedy: 'run `systemd-machine-id-setup`, which writes /etc/machine-id',
  },
  'certificate.not_current': {
    kind: 'conflict',
    retry: true,
    remedy:
      'wait until this machine has the stream of its node; `holdfast status` shows when another machine has the same certificate',
  },
  'certificate.not_registered': {
    kind: 'invalid',
    retry: false,
    remedy: 'register this machine with `holdfast register`, with a token of `holdfast token create`',
  },
  'certificate.not_written': { kind: 'unavailable', retry: true, remedy: 'free disk space or mend the disk, then try again' },
  'certificate.not_yet_valid': {
    kind: 'denied',
    retry: true,
    remedy: 'set the clock that is wrong: both are named',
  },
  'certificate.refused': {
    kind: 'denied',
    retry: true,
    remedy: 'mend what the server names: check the clocks of both, else register this node again with a new token',
  },
  'certificate.revoked': { kind: 'denied', retry: false, remedy: 'register the node again with a new token' },
  'certificate.root_in_use': {
    kind: 'conflict',
    retry: true,
    remedy:
      'wait until these nodes have renewed: agents that are connected do so by themselves, older ones in their time; or retire it with --force, after which they have to register again',
  },
  'certificate.root_invalid': {
    kind: 'invalid',
    retry: false,
    remedy: 'copy `registration-ca.crt` from the data directory of the control plane, and name it with --ca',
  },
  'certificate.root_rotating': {
    kind: 'conflict',
    retry: false,
    remedy: 'retire it first: `holdfast ca retire`',
  },
  'certificate.token_invalid': { kind: 'invalid', retry: false, remedy: 'look at `holdfast token create --help`' },
  'certificate.token_refused': {
    kind: 'denied',
    retry: false,
    remedy: 'make a new token with `holdfast token create`; the log of the server says what was wrong with this one',
  },
  'certificate.too_many': { kind: 'exhausted', retry: true, remedy: 'wait a minute and try again' },
  'certificate.unknown_account': { kind: 'not_found', retry: false, remedy: 'name the account that the token was made for' },
  'certificate.unknown_node': { kind: 'not_found', retry: false, remedy: 'list the nodes with `holdfast nodes`' },
  'certificate.unknown_root': { kind: 'invalid', retry: false, remedy: 'name one that `holdfast ca list` shows' },
  'certificate.untrusted': {
    kind: 'denied',
    retry: true,
    remedy: 'check the clock of this machine, the name of the server, and that the root on disk is that of this control plane',
  },
  'certificate.unusable': {
    kind: 'invalid',
    retry: true,
    remedy: 'put certificate, key and root of this node back in place, or register it again with a new token',
  },
  'certificate.wrong_issuer': {
    kind: 'denied',
    retry: false,
    remedy: 'use a certificate of this control plane: register the node again with a new token',
  },
  'certificate.wrong_role': { kind: 'denied', retry: false, remedy: 'use a certificate that was made for this' },
  'command.not_found': {
    kind: 'unavailable',
    retry: false,
    remedy: 'install the program that is named, by the package manager of this machine',
  },
  'command.not_started': { kind: 'unavailable', retry: true, remedy: 'mend what the machine says of the program that is named' },
  'config.invalid': { kind: 'invalid', retry: false, remedy: 'mend the configuration at the place that is named' },
  'dataplane.addon_missing': { kind: 'internal', retry: false, remedy: 'run `npm run build`' },
  'dataplane.conntrack_failed': {
    kind: 'unavailable',
    retry: true,
    remedy: 'run the agent as root or with CAP_NET_ADMIN, on a kernel with nf_conntrack_netlink',
  },
  'dataplane.filter_denied': {
    kind: 'denied',
    retry: true,
    remedy:
      'run the agent as root or with CAP_NET_ADMIN, and no second one in the same network namespace; or say dataplane.path: proxy',
  },
  'dataplane.filter_failed': {
    kind: 'unavailable',
    retry: true,
    remedy:
      'see that this kernel has nf_tables (CONFIG_NF_TABLES, CONFIG_NF_TABLES_INET, CONFIG_NFT_NAT), or say dataplane.path: proxy',
  },
  'dataplane.sysctl_not_set': {
    kind: 'denied',
    retry: true,
    remedy: 'run the agent as root, or set it yourself and say dataplane.manageSysctls: off',
  },
  'dataplane.routes_not_set': {
    kind: 'denied',
    retry: true,
    remedy: 'run the agent as root or with CAP_NET_ADMIN; `ip route show table local proto 202` shows what is there',
  },
  'dispatch.duplicate_tag': {
    kind: 'conflict',
    retry: false,
    remedy: 'leave the tag out, or name one that no other instruction of this node has',
  },
  'dispatch.elsewhere': {
    kind: 'unavailable',
    retry: true,
    remedy: 'ask the replica that is named: what scripts say is not passed on between replicas, their results are',
  },
  'dispatch.invalid': { kind: 'invalid', retry: false, remedy: 'mend the instruction at the place that is named' },
  'dispatch.not_cancellable': {
    kind: 'conflict',
    retry: false,
    remedy: 'wait for its result, or update the agent of the node',
  },
  'dispatch.not_found': {
    kind: 'not_found',
    retry: false,
    remedy: 'list what there is with `holdfast results`; finished ones are kept for 24 hours',
  },
  'dispatch.too_large': { kind: 'exhausted', retry: false, remedy: 'send less: an instruction takes 1 MiB of JSON' },
  'dispatch.too_many': { kind: 'exhausted', retry: true, remedy: 'wait until the node has answered some of what waits for it' },
  'dns.not_served': {
    kind: 'unavailable',
    retry: true,
    remedy: 'free the port: it is tried again by itself; or name another in dns.listen and start again',
  },
  'dnsmasq.failed': {
    kind: 'internal',
    retry: true,
    remedy: 'look into the journal of dnsmasq on the node for why it did not stay up; the message says what it runs on now',
  },
  'dnsmasq.refused': { kind: 'invalid', retry: false, remedy: 'mend what dnsmasq says of the file; nothing was changed' },
  'dnsmasq.unusable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'install dnsmasq as a service, and let nothing but a file of the agent stand at the place that is named',
  },
  'etcd.refused': {
    kind: 'denied',
    retry: false,
    remedy: 'look at `holdfast etcd list`: what is sick is mended or removed first, and the last member stays',
  },
  'etcd.unavailable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'look at `holdfast etcd list`, and into the log of the etcd of this machine; without a quorum restore a snapshot',
  },
  'etcd.unknown_member': { kind: 'not_found', retry: false, remedy: 'take the id from `holdfast etcd list`' },
  'fleet.unknown_certificate': {
    kind: 'not_found',
    retry: false,
    remedy: 'take the serial from `holdfast nodes -o json` or `holdfast cert list`',
  },
  'fleet.unknown_node': { kind: 'not_found', retry: false, remedy: 'list the nodes with `holdfast nodes`' },
  'fleet.unknown_token': { kind: 'not_found', retry: false, remedy: 'list the tokens with `holdfast token list`' },
  'identity.invalid_name': {
    kind: 'invalid',
    retry: false,
    remedy: 'use a DNS-1123 label: 1 to 63 characters of a-z, 0-9 and -, not at either end',
  },
  'identity.malformed': {
    kind: 'invalid',
    retry: false,
    remedy: 'put the file back from a copy; remove it only if this node may become a new one',
  },
  'identity.not_written': {
    kind: 'unavailable',
    retry: true,
    remedy: 'make the data directory writable and free some space, then start again',
  },
  'identity.unreadable': {
    kind: 'invalid',
    retry: false,
    remedy: 'make it a regular file that the daemon may read; remove it only if this node may become a new one',
  },
  'install.failed': {
    kind: 'internal',
    retry: false,
    remedy: 'do what is named, then run `holdfast install` again: it goes on there',
  },
  'install.running': { kind: 'conflict', retry: true, remedy: 'wait until the other `holdfast install` has ended' },
  'instruction.interrupted': {
    kind: 'internal',
    retry: false,
    remedy: 'look at what it left behind, then send it again under a new tag',
  },
  'instruction.no_source': {
    kind: 'unavailable',
    retry: false,
    remedy: 'name the servers of scripts in the configuration',
  },
  'instruction.not_started': { kind: 'unavailable', retry: true, remedy: 'send it again' },
  'instruction.runner_failed': {
    kind: 'internal',
    retry: true,
    remedy: 'mend what is named: the folder `run` in the data directory, or the task runner, which `npm run build` makes',
  },
  'instruction.running': { kind: 'conflict', retry: true, remedy: 'cancel it, or wait for its end' },
  'instruction.timed_out': {
    kind: 'unavailable',
    retry: true,
    remedy: 'look at whether it took effect, then send it again under a new tag',
  },
  'journal.newer_schema': {
    kind: 'invalid',
    retry: false,
    remedy: 'run the newer version that wrote this file, or another data directory',
  },
  'journal.unavailable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'free disk space or mend the disk: until then reads are answered and instructions with effects are refused',
  },
  'kubernetes.failed': {
    kind: 'unavailable',
    retry: true,
    remedy: 'mend what the program says: it works with /etc/kubernetes/admin.conf of this node',
  },
  'kubernetes.not_written': { kind: 'unavailable', retry: true, remedy: 'free disk space or mend the disk, then try again' },
  'kubernetes.unreadable': {
    kind: 'invalid',
    retry: false,
    remedy: 'put the file that is named back in place: it stands on control planes of Kubernetes, and root alone reads it',
  },
  'link.duplicate': {
    kind: 'conflict',
    retry: true,
    remedy: 'another machine runs with the certificate of this node: stop it, or register one of them again',
  },
  'link.limited': { kind: 'exhausted', retry: true, remedy: 'send less often' },
  'link.not_offered': { kind: 'unimplemented', retry: false, remedy: 'update the control plane' },
  'link.not_served': {
    kind: 'unavailable',
    retry: true,
    remedy: 'free the port or name another, then start again',
  },
  'link.refused': { kind: 'denied', retry: true, remedy: 'mend the cause that the server names' },
  'link.roles_unreadable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'check that the API server answers and that the kubeconfig of this node is valid',
  },
  'link.superseded': {
    kind: 'conflict',
    retry: true,
    remedy: 'a newer stream of this node has taken over: nothing needs to be done',
  },
  'link.timed_out': { kind: 'unavailable', retry: true, remedy: 'try again when the control plane answers' },
  'link.too_large': { kind: 'exhausted', retry: false, remedy: 'send less: 12 MiB in one message at most' },
  'link.unreachable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'check the address, the name service and the firewall on the way to the control plane',
  },
  'loadbalancer.bad_list': {
    kind: 'invalid',
    retry: true,
    remedy: 'mend the list of API servers at the control plane; until then the last good one is balanced over',
  },
  'loadbalancer.foreign': {
    kind: 'conflict',
    retry: true,
    remedy: 'move what /etc/haproxy/haproxy.cfg serves to another machine and remove the file, or remove HAProxy from this one',
  },
  'loadbalancer.not_changed': {
    kind: 'unavailable',
    retry: true,
    remedy: 'look into the journal of HAProxy; it is reloaded instead',
  },
  'loadbalancer.not_linked': {
    kind: 'unavailable',
    retry: true,
    remedy: 'look at `holdfast status` for why there is no link; the last list goes on being balanced over',
  },
  'loadbalancer.not_served': {
    kind: 'unavailable',
    retry: true,
    remedy:
      'look into the journal of HAProxy for why it does not take its file, as a port that somebody else has; it is tried again',
  },
  'loadbalancer.refused': {
    kind: 'internal',
    retry: true,
    remedy: 'install HAProxy 2.4 or newer; what it says of the file is in the message, and nothing was changed',
  },
  'loadbalancer.unusable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'free disk space, and let nothing but a file stand at the place that is named',
  },
  'log.changed': { kind: 'conflict', retry: false, remedy: 'take a snapshot: this is another log than the cursor names' },
  'log.clock_ahead': {
    kind: 'unavailable',
    retry: true,
    remedy: 'let NTP set the clocks of all servers; this one is heard again when its clock is within 60 s of the others',
  },
  'log.closed': { kind: 'unavailable', retry: true, remedy: 'try again when the log is open' },
  'log.compacted': { kind: 'conflict', retry: false, remedy: 'take a snapshot and watch from its cursor' },
  'log.corrupt': {
    kind: 'internal',
    retry: false,
    remedy: 'run `holdfast restore`, which puts the newest intact copy in place',
  },
  'log.denied': {
    kind: 'denied',
    retry: false,
    remedy: 'a node writes only what is its own, under names that begin with its id',
  },
  'log.invalid': {
    kind: 'invalid',
    retry: false,
    remedy: 'mend the program that asked: no state of the log could make this valid',
  },
  'log.newer_schema': {
    kind: 'invalid',
    retry: false,
    remedy: 'run the newer version that wrote this file, or another data directory',
  },
  'log.not_current': {
    kind: 'unavailable',
    retry: true,
    remedy: 'try again when the store answers; --stale shows what this daemon last knew',
  },
  'log.not_offered': {
    kind: 'unimplemented',
    retry: true,
    remedy: 'nothing is wrong: services come with a control plane that has an ordered log',
  },
  'log.not_written': { kind: 'unavailable', retry: true, remedy: 'free disk space or mend the disk, then try again' },
  'log.outcome_unknown': {
    kind: 'unavailable',
    retry: true,
    remedy: 'propose it again with the same request id, which tells what became of it',
  },
  'log.rolled_back': {
    kind: 'conflict',
    retry: false,
    remedy:
      'restore etcd from its newest copy; or, to go on with the older state, stop the servers, run `holdfast server accept-rollback` on one, and start them again',
  },
  'log.slow': { kind: 'exhausted', retry: false, remedy: 'take a snapshot and read faster' },
  'log.too_large': { kind: 'exhausted', retry: false, remedy: 'split the change: 200,000 changes and 256 MiB at most' },
  'log.too_many': { kind: 'exhausted', retry: true, remedy: 'propose less often, or remove what is no longer needed' },
  'log.view_not_written': {
    kind: 'unavailable',
    retry: true,
    remedy: 'free disk space or mend the disk: the view is kept in memory until then, and a restart needs the control plane',
  },
  'metrics.not_served': {
    kind: 'unavailable',
    retry: true,
    remedy:
      'free the port: it is tried again by itself; or name another in metrics.listen (server.listen.metrics of a server) and start again',
  },
  'outbound.failed': { kind: 'unavailable', retry: true, remedy: 'check that the target can be reached from this machine' },
  'outbound.refused': { kind: 'denied', retry: false, remedy: 'name a target outside this machine, over http or https' },
  'outbound.timed_out': { kind: 'unavailable', retry: true, remedy: 'check that the target can be reached from this machine' },
  'outbound.too_large': { kind: 'exhausted', retry: false, remedy: 'ask for less' },
  'overlay.foreign': {
    kind: 'conflict',
    retry: true,
    remedy: 'rename or remove the interface wg0, which is no WireGuard interface',
  },
  'overlay.key_unreadable': {
    kind: 'denied',
    retry: true,
    remedy: 'mend the file that is named, or remove it: then the node makes a new key, and its peers learn it',
  },
  'overlay.no_address_left': {
    kind: 'exhausted',
    retry: true,
    remedy: 'remove nodes that are gone with `holdfast delete node`, or give `overlay.cidr` a shorter prefix',
  },
  'overlay.not_linked': {
    kind: 'unavailable',
    retry: true,
    remedy: 'look into `holdfast status` for why there is no link to the control plane',
  },
  'overlay.not_set': {
    kind: 'unavailable',
    retry: true,
    remedy: 'mend what the machine says; where the kernel has no WireGuard, install wireguard-go',
  },
  'overlay.unreadable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'run the agent as root or with CAP_NET_ADMIN, and look at `wg show wg0`; nothing was changed',
  },
  'resource.conflict': { kind: 'conflict', retry: true, remedy: 'look at what changed meanwhile and try again' },
  'resource.invalid': { kind: 'invalid', retry: false, remedy: 'mend the manifest at the places that are named' },
  'resource.not_found': { kind: 'not_found', retry: false, remedy: 'list what there is with `holdfast get`' },
  'service.failed': { kind: 'internal', retry: true, remedy: 'look into the journal of systemd for what it refused' },
  'service.unmanaged': {
    kind: 'unavailable',
    retry: false,
    remedy: 'install the service, so that systemd runs the daemon, or restart it by hand',
  },
  'session.elsewhere': {
    kind: 'unavailable',
    retry: true,
    remedy: 'ask the replica that is named: sessions are not passed on between replicas',
  },
  'session.invalid': { kind: 'invalid', retry: false, remedy: 'mend the target at the place that is named' },
  'session.not_connected': {
    kind: 'unavailable',
    retry: true,
    remedy: 'wait until `holdfast nodes` shows the node online',
  },
  'session.unreachable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'check that the service runs, and that the node resolves the names of its cluster',
  },
  'store.corrupt': {
    kind: 'internal',
    retry: false,
    remedy:
      'stop the server and put back a copy of `control.db` that you keep elsewhere; without one move it away, and every node has to register again',
  },
  'store.key_missing': {
    kind: 'invalid',
    retry: false,
    remedy: 'put the key file of this control plane there; without it nothing that is sealed can be read',
  },
  'store.key_unreadable': { kind: 'invalid', retry: false, remedy: 'make the key file readable for this user alone, mode 0600' },
  'store.key_wrong': {
    kind: 'invalid',
    retry: false,
    remedy: 'put the key file of this control plane there: all replicas have the same',
  },
  'store.malformed': { kind: 'internal', retry: false, remedy: 'run the version that wrote it, or the newest' },
  'store.newer_schema': {
    kind: 'invalid',
    retry: false,
    remedy: 'run the newer version that wrote this file, or another data directory',
  },
  'store.outcome_unknown': {
    kind: 'unavailable',
    retry: true,
    remedy: 'ask what became of it before doing it again',
  },
  'store.seal_broken': { kind: 'internal', retry: false, remedy: 'put the store back from a copy: this value was changed' },
  'store.too_large': { kind: 'exhausted', retry: false, remedy: 'split it: 100 keys and 1 MiB at most in one step' },
  'store.unavailable': {
    kind: 'unavailable',
    retry: true,
    remedy: 'mend the disk or the store of the control plane, then try again',
  },
  'uninstall.not_a_node': {
    kind: 'invalid',
    retry: false,
    remedy: 'name the data directory of the agent with --data-dir: a control plane is not removed by this command',
  },
  'uninstall.not_removed': {
    kind: 'unavailable',
    retry: true,
    remedy: 'mend what is named, then run the same command again: what is gone already is no failure',
  },
  'vip.conflict': {
    kind: 'conflict',
    retry: true,
    remedy: 'ask again with `holdfast vip list`: another change of the holder was under way',
  },
  'vip.exhausted': { kind: 'exhausted', retry: true, remedy: 'delete services, or wait until a released address is free again' },
  'vip.no_candidate': {
    kind: 'invalid',
    retry: true,
    remedy: 'name a node that is online and one of `vip.candidates`: `holdfast vip list` shows them',
  },
  'vip.no_interface': {
    kind: 'invalid',
    retry: true,
    remedy: 'name an interface that is there in `vip.interface`, or an address of one of its networks in `vip.address`',
  },
  'vip.not_configured': {
    kind: 'unimplemented',
    retry: false,
    remedy: 'set `vip.address` on this node, or take it out of `vip.candidates` of the control plane',
  },
  'vip.not_in_force': {
    kind: 'unavailable',
    retry: true,
    remedy: 'look at `holdfast status` of the node; the control plane has asked another one meanwhile',
  },
  'vip.not_set': {
    kind: 'denied',
    retry: true,
    remedy: 'run the agent as root, or with CAP_NET_ADMIN and CAP_NET_RAW',
  },
  'vip.off': {
    kind: 'unimplemented',
    retry: false,
    remedy: 'set `vip.candidates` of the control plane, and start it again',
  },
  'vip.range_changed': { kind: 'invalid', retry: false, remedy: 'put `vip.range` back: it is set once for a log' },
  'vip.unavailable': { kind: 'conflict', retry: false, remedy: 'leave `spec.vip` out, or name a free address of the range' },
} as const satisfies Record<string, CodeFacts>;

export type ErrorCode = keyof typeof errorCodes;

/** `problem` and `remedy` are sentences for people. */
export type ErrorFacts = Readonly<Record<string, string>>;

export class AgentError extends Error {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, facts: ErrorFacts = {}, options?: { cause: unknown }) {
    super(describe(code, facts), options);
    this.name = 'AgentError';
    this.code = code;
    this.facts = facts;
  }

  get kind(): ErrorKind {
    return errorCodes[this.code].kind;
  }

  /** That of the code, unless whoever threw it knew better. */
  get remedy(): string {
    return this.facts.remedy ?? errorCodes[this.code].remedy;
  }
}

/** `problem` is the whole sentence, and other facts are for programs; without one they stand for it, as `name=value`. */
function describe(code: ErrorCode, { problem, remedy: _, ...rest }: ErrorFacts): string {
  const details = Object.entries(rest).map(([name, value]) => `${name}=${value}`);
  return [`${code}:`, ...(problem === undefined ? details : [problem])].join(' ');
}
