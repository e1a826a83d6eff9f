import { expect, test } from 'vitest';
import { UfwRanges } from '../../../src/adapters/overlay/ufw-ranges.js';
import { FakeCommandRunner } from '../../fakes/fake-command-runner.js';
import { ranges } from '../../support/overlay-peers.js';

const options = { signal: new AbortController().signal };

/** A ufw in memory, with a rule of somebody else's. */
function ufw(status = 'active') {
  const commands = new FakeCommandRunner();
  const rules = ["allow in on wg0 from 10.99.0.0/16 comment 'mine'"];
  commands.program(['ufw', 'status'], { stdout: `Status: ${status}\n` });
  commands.program(['ufw', 'show', 'added'], () => ({
    stdout: `Added user rules (see 'ufw status' for running firewall):\n${rules.map((rule) => `ufw ${rule}\n`).join('')}`,
  }));
  commands.program(['ufw', 'allow'], ({ argv }) => {
    const [rule = '', comment] = argv.slice(1).join(' ').split(' comment ');
    // It writes a network of one as its address.
    rules.push(`${rule.replace('/32', '')} comment '${comment}'`);
    return {};
  });
  commands.program(['ufw', 'delete'], ({ argv }) => {
    const rule = argv.slice(2).join(' ').replace('/32', '');
    const place = rules.findIndex((one) => one.startsWith(`${rule} comment`));
    if (place >= 0) rules.splice(place, 1);
    return {};
  });
  return { commands, rules, firewall: new UfwRanges(commands) };
}

test('opens what it is given, closes what it is given no more, and leaves the rules of others', async () => {
  const { rules, commands, firewall } = ufw();
  await firewall.set(ranges('10.78.0.0/16', '10.9.0.7'), options);
  expect(rules).toEqual([
    "allow in on wg0 from 10.99.0.0/16 comment 'mine'",
    "allow 51820/udp comment 'holdfast overlay'",
    "allow in on wg0 from 10.78.0.0/16 comment 'holdfast overlay'",
    "allow in on wg0 from 10.9.0.7 comment 'holdfast overlay'",
  ]);
  const asked = commands.ran.length;
  await firewall.set(ranges('10.78.0.0/16', '10.9.0.7'), options);
  expect(commands.ran.length - asked).toBe(2);
  await firewall.set(ranges('10.78.0.0/16'), options);
  expect(rules).toHaveLength(3);
});

test('does nothing where ufw is not active, or not there', async () => {
  const { rules, firewall } = ufw('inactive');
  await firewall.set(ranges('10.78.0.0/16'), options);
  expect(rules).toHaveLength(1);
  await new UfwRanges(new FakeCommandRunner()).set(ranges('10.78.0.0/16'), options);
});

test('what ufw refuses is an error with its words', async () => {
  const { commands, firewall } = ufw();
  commands.program(['ufw', 'allow'], { exitCode: 1, stderr: 'ERROR: Invalid port' });
  await expect(firewall.set([], options)).rejects.toMatchObject({
    code: 'overlay.not_set',
    message: expect.stringContaining('Invalid port'),
  });
});

test('what is closed for good leaves the rules of others', async () => {
  const { rules, firewall } = ufw();
  await firewall.set(ranges('10.78.0.0/16', '10.9.0.7'), options);
  await firewall.clear(options);
  expect(rules).toEqual(["allow in on wg0 from 10.99.0.0/16 comment 'mine'"]);
});
