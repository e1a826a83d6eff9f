import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ExecaCommandRunner } from '../../../src/adapters/command/execa-command-runner.js';
import { SystemdUnits } from '../../../src/adapters/service/systemd-units.js';
import { unitsContract } from '../../contract/units.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';
import { FakeUnits } from '../../fakes/fake-units.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

/** A systemctl with the words and exit codes of systemd's: `<unit>.installed` holds what it says when it refuses to start. */
async function systemd() {
  const booted = await tempFolder();
  const folder = await tempFolder();
  const systemctl = join(folder, 'systemctl');
  await writeFile(
    systemctl,
    `#!/bin/sh
cd ${folder}
echo "$*" >> calls
for unit; do :; done
case "$1" in
show)
  if [ ! -e "$unit.installed" ]; then load=not-found active=inactive sub=dead
  elif [ -e "$unit.started" ]; then load=loaded active=active sub=running
  else load=loaded active=inactive sub=dead; fi
  echo "ExecMainStartTimestampMonotonic=$(cat "$unit.started" 2>/dev/null || echo 0)"
  printf 'LoadState=%s\\nActiveState=%s\\nSubState=%s\\n' $load $active $sub;;
reset-failed) echo "Failed to reset failed state of unit $unit: Unit $unit not loaded." >&2; exit 1;;
restart)
  [ -e "$unit.installed" ] || { echo "Failed to restart $unit: Unit $unit not found." >&2; exit 5; }
  if [ -s "$unit.installed" ]; then rm -f "$unit.started"; cat "$unit.installed" >&2; exit 1; fi
  date +%s%6N > "$unit.started";;
reload)
  [ -e "$unit.started" ] || { echo "$unit is not active, cannot reload." >&2; exit 1; };;
esac
`,
  );
  await chmod(systemctl, 0o755);
  const install = (unit: string, refuses = '') => writeFile(join(folder, `${unit}.installed`), refuses);
  const calls = () => readFile(join(folder, 'calls'), 'utf8');
  return { units: new SystemdUnits({ commands: new ExecaCommandRunner(), systemctl, booted }), booted, install, calls };
}

unitsContract('systemd', async () => {
  const { units, booted, install } = await systemd();
  return { units, install, remove: () => rm(booted, { recursive: true }) };
});

unitsContract('fake', async () => {
  const units = new FakeUnits(new FakeClock());
  return {
    units,
    install: async (unit, refuses) => units.install(unit, () => (refuses === undefined ? 'runs' : { refuses })),
    remove: async () => units.remove(),
  };
});

test('the unit is an argument that is no option', async () => {
  const { units, install, calls } = await systemd();
  await install('a.service');
  await units.restart('a.service', options);
  await units.state('a.service', options);
  expect(await calls()).toBe(`reset-failed -- a.service
restart -- a.service
show --property=LoadState,ActiveState,SubState,ExecMainStartTimestampMonotonic -- a.service
`);
});

test('a systemctl that fails or hangs is an error that says so', async () => {
  const commands = new FakeCommandRunner();
  const booted = await tempFolder();
  const units = new SystemdUnits({ commands, booted });
  commands.program(['systemctl', 'reset-failed'], {});
  commands.program(['systemctl', 'show'], { exitCode: 1, stderr: 'Failed to connect to bus: No such file\n' });
  commands.program(['systemctl', 'restart'], { exitCode: -1, timedOut: true });
  await expect(units.state('a.service', options)).rejects.toThrow(
    'service.failed: systemctl show a.service: Failed to connect to bus: No such file',
  );
  await expect(units.restart('a.service', options)).rejects.toThrow(
    'service.failed: systemctl restart a.service: it took too long',
  );
  expect(commands.ran.map(({ timeoutMs }) => timeoutMs)).toEqual([10_000, 10_000, 20_000]);
});
