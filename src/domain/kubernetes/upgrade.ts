import { classifyFault } from '../install/faults.js';
import type { Answer } from '../instruction/model.js';
import { rolesOf } from '../link/roles.js';
import { failureText, type ProgramEnd } from './model.js';

/** Versions without a `v`; empty: it is left as it is. */
export interface UpgradePlan {
  readonly do: 'upgrade_node';
  readonly kubernetes: string;
  readonly containerd: string;
  readonly helm: string;
  readonly isFirstControlPlane: boolean;
}

/** In the order in which they are taken. What only asks the network comes before anything is changed. */
export const upgradeSteps = [
  'signing-key',
  'apt-list',
  'apt-update',
  'kubeadm',
  'cluster',
  'kubelet',
  'containerd',
  'helm',
  'restart',
  'wait',
] as const;
export type UpgradeStep = (typeof upgradeSteps)[number];

/** Where an upgrade stands, as the journal has it. */
export interface UpgradePlace {
  /** Version of the kubelet before anything was done; empty when it could not be told. */
  readonly from: string;
  readonly step: UpgradeStep;
}

export function placeText({ from, step }: UpgradePlace): string {
  return `${step}, from ${from === '' ? '-' : from}`;
}

/** Undefined for what no `placeText` wrote. */
export function parsePlace(text: string | undefined): UpgradePlace | undefined {
  const [, name, from] = /^([a-z-]+), from (\S+)$/.exec(text ?? '') ?? [];
  const step = upgradeSteps.find((each) => each === name);
  return step === undefined || from === undefined ? undefined : { step, from: from === '-' ? '' : from };
}

/** `1.33` of `1.33.4`. */
export function minorOf(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}

/**
 * Why a node of version `from` is not brought to `to`, before anything was done; undefined when it may be. kubeadm takes one minor
 * version after the other, and no way back.
 */
export function skewProblem(from: string, to: string): string | undefined {
  const [a, b] = [from, to].map((version) => version.split('.').map(Number));
  const [majorA = 0, minorA = 0, patchA = 0] = a ?? [];
  const [majorB = 0, minorB = 0, patchB = 0] = b ?? [];
  const isBack = majorB < majorA || (majorB === majorA && (minorB < minorA || (minorB === minorA && patchB < patchA)));
  if (isBack) return `the node has ${from}, which is newer than ${to}: an upgrade does not go back`;
  const isFar = majorB !== majorA || minorB > minorA + 1;
  return isFar ? `the node has ${from}: from there ${minorOf(to)} is more than one minor version away` : undefined;
}

/** Of `kubelet --version`, `helm version --short` and an API server's `gitVersion`: `1.33.4`; empty when there is none in it. */
export function versionIn(text: string): string {
  return /\bv?(\d+\.\d+\.\d+)\b/.exec(text)?.[1] ?? '';
}

/** A package as dpkg knows it: `Status` and `Version` of `dpkg-query`. */
export interface PackageState {
  readonly isInstalled: boolean;
  /** Without epoch and revision. */
  readonly upstream: string;
}

export const PACKAGE_FORMAT = `--showformat=\${db:Status-Abbrev} \${Version}\n`;

/** The line of `dpkg-query` in `PACKAGE_FORMAT`; what dpkg does not know at all has none. */
export function packageState(line: string): PackageState {
  const [status = '', version = ''] = line.trim().split(/\s+/);
  // The second letter is the state, and a third one says that it is broken.
  const isInstalled = /^.i$/.test(status);
  return { isInstalled, upstream: version.replace(/^\d+:/, '').replace(/-[^-]*$/, '') };
}

/** The list of Kubernetes' packages of one minor version, and the key that signs them. */
export function aptList(repository: string, keyFile: string): string {
  return `deb [signed-by=${keyFile}] ${repository} /\n`;
}

/** @param packages base URL of the packages' server */
export function repositoryUrl(packages: string, version: string): string {
  return `${packages}/core:/stable:/v${minorOf(version)}/deb/`;
}

/** Whether it is a key in ASCII armour and nothing else: a proxy's page of errors is none. */
export function isArmouredKey(text: string): boolean {
  const armour = /^-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n[\w+/=:;.,()\s-]+\r?\n-----END PGP PUBLIC KEY BLOCK-----\s*$/;
  return armour.test(text);
}

/** What `kubectl get node -o json` says, as far as an upgrade ends with it. */
export interface UpgradedNode {
  readonly version: string;
  readonly isReady: boolean;
}

/** Undefined when it is no Node. */
export function readUpgradedNode(value: unknown): UpgradedNode | undefined {
  if (typeof value !== 'object' || value === null || !('status' in value)) return undefined;
  const { status } = value;
  if (typeof status !== 'object' || status === null || !('nodeInfo' in status)) return undefined;
  const { nodeInfo } = status;
  if (typeof nodeInfo !== 'object' || nodeInfo === null || !('kubeletVersion' in nodeInfo)) return undefined;
  const conditions = 'conditions' in status ? status.conditions : undefined;
  const { status: state } = rolesOf({ status: { conditions } }, false);
  return { version: versionIn(String(nodeInfo.kubeletVersion)), isReady: state === 'ready' };
}

/** A step that failed, for whoever asked: what it was, why, and what to do. */
export interface StepFailure {
  readonly cause: string;
  readonly remedy: string;
}

/** The last line that a program wrote is kept: the rest stands in the log of the node. */
const MAX_SAID = 300;

export function programFailure(program: string, end: ProgramEnd): StepFailure {
  const { code, cause, remedy } = classifyFault(`${end.stdout}\n${end.stderr}`);
  const said = (end.stderr.trim() === '' ? end.stdout : end.stderr).trim().split('\n').at(-1) ?? '';
  const last = failureText(program, { ...end, stdout: '', stderr: said.slice(0, MAX_SAID), dropped: 0 });
  return { cause: `${cause} (${code}): ${last}`, remedy };
}

export function failedAnswer(step: string, { cause, remedy }: StepFailure, versions: Versions): Answer {
  return answer(false, `step ${step}: ${cause}; what to do: ${remedy}`, versions);
}

export function upgradedAnswer(message: string, versions: Versions): Answer {
  return answer(true, message, versions);
}

/** A failure beside the steps. It is never an `ERROR`. */
export function unstartedAnswer(message: string): Answer {
  return answer(false, message, { previousVersion: '', newVersion: '' });
}

export interface Versions {
  readonly previousVersion: string;
  readonly newVersion: string;
}

function answer(success: boolean, message: string, { previousVersion, newVersion }: Versions): Answer {
  return { kind: 'json', type: 'UPGRADE_NODE_K8S_RESPONSE', value: { success, message, previousVersion, newVersion } };
}
