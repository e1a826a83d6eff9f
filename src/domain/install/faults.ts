/** What stops a command that installs something, as control planes know it. */
export type FaultCode =
  | 'NA_APT_LOCK'
  | 'NA_DISK_FULL'
  | 'NA_NET_UNREACH'
  | 'NA_PKG_NOTFOUND'
  | 'NA_HELD_PKGS'
  | 'NA_PERMISSION'
  | 'NA_KUBEADM'
  | 'NA_CONTAINERD'
  | 'NA_REPO_GPG'
  | 'NA_GENERIC';

export interface Fault {
  readonly code: FaultCode;
  readonly cause: string;
  /** For people: what to do. */
  readonly remedy: string;
  /** Whether the same command may succeed later without anybody's help. */
  readonly passes: boolean;
}

interface Known extends Fault {
  /** Of a line that the program wrote. */
  readonly says: RegExp;
}

/** The first that fits is the cause: what makes others fail stands before them. */
const known: readonly Known[] = [
  {
    code: 'NA_DISK_FULL',
    says: /no space left on device|(?:n't have|not) enough (?:free )?(?:disk )?space|disk quota exceeded/i,
    cause: 'the disk is full',
    remedy: 'free space on the file system of /var and /usr, then start it again',
    passes: false,
  },
  {
    code: 'NA_APT_LOCK',
    says: /could not get lock|unable to (?:acquire|lock) (?:the )?(?:dpkg|administration|directory)|is another process using it/i,
    cause: 'another program holds the lock of the package database',
    remedy: 'wait until apt, dpkg or unattended-upgrades has ended, then start it again',
    passes: true,
  },
  {
    code: 'NA_PERMISSION',
    says: /permission denied|operation not permitted|are you root\?|must be run as root|read-only file system/i,
    cause: 'the agent may not do this on this machine',
    remedy: 'run the agent as root, on file systems that can be written',
    passes: false,
  },
  {
    code: 'NA_REPO_GPG',
    says: /no_pubkey|gpg error|is not signed|signatures? (?:were|was|couldn't|could not|are|is) .*(?:invalid|verif)|expkeysig|badsig|conflicting values set for option signed-by/i,
    cause: 'the signature of a package repository cannot be verified',
    remedy:
      'see that one list only names the repository, with its signing key of today, and that no proxy changes what it serves',
    passes: false,
  },
  {
    code: 'NA_HELD_PKGS',
    says: /held broken packages|held packages were changed|dpkg was interrupted|unmet dependencies/i,
    cause: 'packages are held, half installed or do not fit together',
    remedy: 'run `dpkg --configure -a` and `apt-get install --fix-broken`, look at `apt-mark showhold`, then start it again',
    passes: false,
  },
  {
    code: 'NA_NET_UNREACH',
    says: /could not resolve|temporary failure (?:in name resolution|resolving)|network is unreachable|no route to host|connection (?:refused|timed out|reset|failed)|failed to fetch|could not connect|unable to connect|i\/o timeout|no such host|tls handshake timeout|enotfound|econnrefused|etimedout|eai_again/i,
    cause: 'a server on the network cannot be reached',
    remedy: 'see that this machine resolves names and reaches the package repositories, through its proxy if it has one',
    passes: true,
  },
  {
    code: 'NA_PKG_NOTFOUND',
    says: /unable to locate package|has no installation candidate|version '[^']*' for '[^']*' was not found|couldn't find any package/i,
    cause: 'the repositories of this machine do not have the package in this version',
    remedy: 'choose a version that they have: `apt-cache madison NAME` lists them',
    passes: false,
  },
  {
    code: 'NA_CONTAINERD',
    says: /containerd(?:\.service)?\b.*(?:fail|error|not running|refused|inactive)|container runtime is not running|failed to (?:create|start) container runtime/i,
    cause: 'containerd does not work',
    remedy: 'look at `journalctl -u containerd`, mend it, then start it again',
    passes: false,
  },
  {
    code: 'NA_KUBEADM',
    says: /\[preflight\]|\[upgrade\/|error execution phase|kubeadm/i,
    cause: 'kubeadm refused or failed',
    remedy: 'look at what kubeadm says in the log of the agent on the node, mend it, then start it again',
    passes: false,
  },
];

const GENERIC: Fault = {
  code: 'NA_GENERIC',
  cause: 'the command failed',
  remedy: 'look at what it says in the log of the agent on the node',
  passes: true,
};

/** Patterns are tried on lines of this length at most: what a program says of a failure is shorter. */
const MAX_LINE = 1_000;
const MAX_LINES = 2_000;

/** Why a program failed, by what it wrote. */
export function classifyFault(output: string): Fault {
  const lines = output
    .split('\n')
    .slice(-MAX_LINES)
    .map((line) => line.slice(0, MAX_LINE));
  const found = known.find(({ says }) => lines.some((line) => says.test(line)));
  if (found === undefined) return GENERIC;
  const { code, cause, remedy, passes } = found;
  return { code, cause, remedy, passes };
}
