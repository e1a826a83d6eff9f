import { existsSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { run } from '../rig/children.ts';
import { rigPeer } from '../rig/peers.ts';

/** What a result means little without. */
export interface Machine {
  readonly date: string;
  readonly hardware: string;
  readonly kernel: string;
  readonly versions: readonly string[];
}

const commands = [
  ['git', '-C', rigPeer.replace(/\/bench\/rig-peer$/, ''), 'describe', '--always', '--dirty'],
  ['haproxy', '-v'],
  ['nginx', '-v'],
  ['iperf3', '--version'],
  [existsSync('/usr/local/go/bin/go') ? '/usr/local/go/bin/go' : 'go', 'version'],
];

export async function describeMachine(now: Date): Promise<Machine> {
  const versions = await Promise.all(commands.map(versionOf));
  const processor = cpus()[0]?.model ?? 'unknown';
  return {
    date: now.toISOString().slice(0, 10),
    hardware: `${cpus().length} cores (${processor}), ${Math.round(totalmem() / 2 ** 30)} GiB`,
    kernel: `Linux ${release()}`,
    versions: [`Node ${process.version}`, ...versions.filter((version) => version !== '')],
  };
}

/** The first line, without what is no version; nginx says it on standard error. */
async function versionOf(command: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(command).catch(() => ({ code: 127, stdout: '', stderr: '' }));
  if (code !== 0) return '';
  const [line = ''] = (stdout + stderr).split('\n');
  return `${command[0] === 'git' ? 'Holdfast commit ' : ''}${line.replace(/^nginx version: | - https.*| \(cJSON.*/g, '')}`;
}
