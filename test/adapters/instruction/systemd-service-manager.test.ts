import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SystemdServiceManager } from '../../../src/adapters/instruction/systemd-service-manager.js';
import { serviceManagerContract } from '../../contract/service-manager.contract.js';
import { FakeServiceManager } from '../../fakes/fake-service-manager.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

/** Programs with the names and exit codes of systemd's; `state` holds the argv of the timer that is active, one a line. */
async function systemd() {
  const booted = await tempFolder();
  const programs = await tempFolder();
  const state = join(programs, 'state');
  const [systemctl, systemdRun] = [join(programs, 'systemctl'), join(programs, 'systemd-run')];
  const program = async (path: string, body: string) => {
    await writeFile(path, `#!/bin/sh\n${body}\n`);
    await chmod(path, 0o755);
  };
  await program(
    systemctl,
    `case "$*" in "is-active agent.service") exit 0;; "is-active holdfast-restart.timer") test -e ${state};; *) exit 3;; esac`,
  );
  await program(systemdRun, `test -e ${state} && { echo Unit exists >&2; exit 1; }; printf '%s\\n' "$@" > ${state}`);
  const argv = () =>
    readFile(state, 'utf8').then(
      (text) => text.trimEnd().split('\n'),
      () => undefined,
    );
  const manager = new SystemdServiceManager({ unit: 'agent.service', booted, systemctl, systemdRun });
  return { manager, argv, booted, systemctl, systemdRun, program };
}

serviceManagerContract('systemd', async () => {
  const { manager, argv, booted } = await systemd();
  const scheduled = async () => {
    const delay = (await argv())?.find((word) => word.startsWith('--on-active='));
    return delay === undefined ? undefined : Number(/=(\d+)s$/.exec(delay)?.[1]);
  };
  return { manager, scheduled, remove: () => rm(booted, { recursive: true }) };
});

serviceManagerContract('fake', async () => {
  const manager = new FakeServiceManager();
  return { manager, scheduled: async () => manager.scheduled, remove: async () => manager.remove() };
});

test('the unit is an argument, and no part of a command line', async () => {
  const { manager, argv, systemctl } = await systemd();
  await manager.restart(2, options);
  expect(await argv()).toEqual([
    ...['--collect', '--quiet', '--unit=holdfast-restart', '--on-active=2s', '--timer-property=AccuracySec=100ms', '--'],
    ...['/bin/sh', '-c', '"$1" reset-failed "$2"; exec "$1" restart "$2"', 'sh', systemctl, 'agent.service'],
  ]);
});

test('a unit that systemd does not run is named', async () => {
  const { booted, systemctl } = await systemd();
  const manager = new SystemdServiceManager({ unit: 'other.service', booted, systemctl });
  await expect(manager.check(options)).rejects.toThrow('systemd does not run other.service: ');
});

test('a program that is not there, and one that fails, are errors of their own', async () => {
  const { booted, systemctl, systemdRun, program } = await systemd();
  const missing = new SystemdServiceManager({ unit: 'agent.service', booted, systemctl, systemdRun: '/nowhere/systemd-run' });
  await expect(missing.restart(1, options)).rejects.toEqual(expect.objectContaining({ code: 'service.failed' }));
  await program(systemdRun, 'echo Access denied >&2; exit 1');
  const refused = new SystemdServiceManager({ unit: 'agent.service', booted, systemctl, systemdRun });
  await expect(refused.restart(1, options)).rejects.toThrow('systemd-run: Access denied');
});
