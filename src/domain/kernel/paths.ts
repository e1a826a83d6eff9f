import type { Brand } from './brand.js';

/** An absolute path of POSIX, without `.`, `..`, doubled or trailing slashes. */
export type AbsolutePath = Brand<string, 'AbsolutePath'>;

/** Every path that the daemon uses. Nothing else makes one, so that `--root` moves all of them. */
export interface Paths {
  readonly dataDir: AbsolutePath;
  /** `node_id`, host name and labels; written once. */
  readonly identity: AbsolutePath;
  /** The audit log; its former files stand beside it. */
  readonly auditLog: AbsolutePath;
  /** The embedded ordered log. */
  readonly logDb: AbsolutePath;
  /** Mode 0700: who may enter it may use the socket. */
  readonly adminDir: AbsolutePath;
  readonly adminSocket: AbsolutePath;
  /** Held while a daemon uses the data directory. */
  readonly lock: AbsolutePath;
  /** The configuration that is read when none is named. */
  readonly config: AbsolutePath;
  /** The configuration of a daemon of the whole machine, where the data directory has none. */
  readonly machineConfig: AbsolutePath;
  /** What `holdfast adopt` took over, as long as it is not undone. */
  readonly adoption: AbsolutePath;
  /** Which port each listener had that could not have its own. */
  readonly listenPorts: AbsolutePath;
  /** What sysctls were before the data plane set them. */
  readonly sysctls: AbsolutePath;
  /** A control plane's own state: tokens, certificates, instructions, epochs. */
  readonly controlDb: AbsolutePath;
  /** The newest revision that was seen of a log in etcd. */
  readonly etcdWitness: AbsolutePath;
  /** What secrets are sealed with: of a control plane in its store, the same on all replicas; of a node in its journal. */
  readonly sealingKey: AbsolutePath;
  /** Copies that an archive is being made of. */
  readonly backup: AbsolutePath;
  /** The root that machines register under, for people to copy. */
  readonly registrationRoot: AbsolutePath;
  /** The first certificate of an admin, for people to take away. */
  readonly firstAdmin: AbsolutePath;
  /** A node's certificates. */
  readonly certs: AbsolutePath;
  /** Where a node was registered. */
  readonly enrolment: AbsolutePath;
  /** A node's instructions and their results. */
  readonly journalDb: AbsolutePath;
  /** A node's last known state of the log. */
  readonly viewDb: AbsolutePath;
  /** A node's private key in the overlay. */
  readonly overlayKey: AbsolutePath;
  /** Which configuration of dnsmasq was seen to be served. */
  readonly dnsmasqMemory: AbsolutePath;
  /** How far an install is, its lock, and the folders of its programs. */
  readonly install: AbsolutePath;
  /** The newest list of API servers, which HAProxy balances over. */
  readonly apiServers: AbsolutePath;
  /** Folders of the programs that instructions run. */
  readonly run: AbsolutePath;
  /** Beside the data directory, which goes before it: that this node is being removed. */
  readonly removal: AbsolutePath;
}

/** `undefined` when `text` is not absolute, or holds a NUL. `..` at the top stays there, as in the kernel. */
export function absolutePath(text: string): AbsolutePath | undefined {
  if (!text.startsWith('/') || text.includes('\0')) return undefined;
  const parts: string[] = [];
  for (const part of text.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}` as AbsolutePath;
}

/** `path` below `root`, which is `/` for the machine itself; once more with the same root is another folder. */
export function under(root: AbsolutePath, path: AbsolutePath): AbsolutePath {
  return root === '/' ? path : (`${root}${path === '/' ? '' : path}` as AbsolutePath);
}

export function makePaths({ root, dataDir }: { readonly root: AbsolutePath; readonly dataDir: AbsolutePath }): Paths {
  const base = under(root, dataDir);
  const inDataDir = (name: string) => `${base === '/' ? '' : base}/${name}` as AbsolutePath;
  return {
    dataDir: base,
    identity: inDataDir('node-identity.json'),
    auditLog: inDataDir('audit.log'),
    logDb: inDataDir('log.db'),
    adminDir: inDataDir('admin'),
    adminSocket: inDataDir('admin/admin.sock'),
    lock: inDataDir('lock'),
    config: inDataDir('holdfast.yaml'),
    machineConfig: under(root, '/etc/holdfast/config.yaml' as AbsolutePath),
    adoption: inDataDir('adoption.json'),
    listenPorts: inDataDir('listen-ports.json'),
    sysctls: inDataDir('sysctls.json'),
    controlDb: inDataDir('control.db'),
    etcdWitness: inDataDir('etcd-log.witness'),
    sealingKey: inDataDir('sealing.key'),
    backup: inDataDir('backup'),
    registrationRoot: inDataDir('registration-ca.crt'),
    firstAdmin: inDataDir('admin-client'),
    certs: inDataDir('certs'),
    enrolment: inDataDir('enrolment.json'),
    journalDb: inDataDir('journal.db'),
    viewDb: inDataDir('view.db'),
    overlayKey: inDataDir('overlay.key'),
    dnsmasqMemory: inDataDir('dnsmasq.json'),
    install: inDataDir('install'),
    apiServers: inDataDir('api-servers.json'),
    run: inDataDir('run'),
    removal: `${base === '/' ? '' : base}.removal` as AbsolutePath,
  };
}
