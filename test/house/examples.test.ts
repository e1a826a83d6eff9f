import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AGENT_UNIT } from '../../src/composition/modules/link.js';

const folder = join(import.meta.dirname, '../../examples/systemd');
const units = readdirSync(folder);

test('there is a unit for each daemon, and the agent restarts the one that is named so', () => {
  expect(units).toEqual([AGENT_UNIT, 'holdfast-server.service']);
});

test.each(units)('%s starts its daemon, again and again', (name) => {
  const text = readFileSync(join(folder, name), 'utf8');
  const verb = /^holdfast-(\w+)\.service$/.exec(name)?.[1];
  expect(text).toContain(`\nExecStart=/opt/holdfast/bin/holdfast ${verb}\n`);
  for (const line of ['Restart=always', 'StartLimitIntervalSec=0', 'After=network-online.target'])
    expect(text).toContain(`\n${line}\n`);
});
