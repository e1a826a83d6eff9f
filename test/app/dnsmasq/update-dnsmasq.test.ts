import { describe, expect, test } from 'vitest';
import { DNSMASQ_UNIT, DnsmasqEffect } from '../../../src/app/dnsmasq/dnsmasq-effect.js';
import type { StartResult } from '../../fakes/fake-units.js';
import { acknowledging, contentOf, InstructionWorld, type Process, sha256 } from '../../support/instruction-rig.js';

const OLD = 'address=/a.example/10.0.0.1\n';
const NEW = 'address=/a.example/10.0.0.2\n';
const SETTLE_MS = 2_000;

/** A node with dnsmasq: `loaded` is what it answers from, undefined while it does not run. */
class DnsmasqWorld extends InstructionWorld {
  loaded: string | undefined;
  /** What it does with a file, by its text. */
  readonly starts = new Map<string, StartResult>();

  constructor(before = OLD) {
    super();
    if (before !== 'none') this.dnsmasq.write(before);
    this.units.install(DNSMASQ_UNIT, () => {
      const text = this.dnsmasq.text() ?? '';
      const result = this.starts.get(text) ?? 'runs';
      this.loaded = result === 'runs' ? text : undefined;
      return result;
    });
  }

  async running(): Promise<this> {
    await this.units.restart(DNSMASQ_UNIT, { signal: new AbortController().signal });
    this.units.restarts.length = 0;
    return this;
  }

  async push(contents: unknown, tag = 't1', process?: Process): Promise<string> {
    const agent = process ?? (await this.start());
    const session = agent.connect(acknowledging(agent));
    agent.deliver('UPDATE_DNSMASQ', tag, { fileContents: contents });
    await agent.settle(SETTLE_MS * 3);
    return session
      .of(tag)
      .map((message) => `${message.type} ${contentOf(message)}`)
      .join('\n');
  }
}

const done = 'NO_CONTENT {}';

describe('UPDATE_DNSMASQ', () => {
  test('is tested, put in place, restarted on and acknowledged 2 s later', async () => {
    const world = await new DnsmasqWorld().running();
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    process.deliver('UPDATE_DNSMASQ', 't1', { fileContents: NEW });
    await process.settle(SETTLE_MS - 1);
    expect([world.loaded, session.sent]).toEqual([NEW, []]);
    await process.settle(1);
    expect(session.dump()).toBe(`t1 ${done}`);
    expect(world.units.restarts).toHaveLength(1);
  });

  test('the first file of all, on a unit that does not run', async () => {
    const world = new DnsmasqWorld('none');
    expect(await world.push(NEW)).toBe(done);
    expect([world.loaded, world.dnsmasq.text()]).toEqual([NEW, NEW]);
  });

  test.each<[string, unknown, string]>([
    [
      'a forbidden directive',
      'no-resolv\nconf-file=/etc/shadow',
      'fileContents: line 2: conf-file is refused: it reads another file',
    ],
    ['nothing', '', 'fileContents: empty; a comment alone sets nothing on purpose'],
    ['no text', 5, 'fileContents: text'],
    ['nothing at all', undefined, 'fileContents: text'],
  ])('%s is refused before anything is looked at', async (_, contents, problem) => {
    const world = await new DnsmasqWorld().running();
    expect(await world.push(contents)).toBe(`ERROR INVALID: UPDATE_DNSMASQ: ${problem}`);
    expect([world.dnsmasq.text(), world.units.restarts]).toEqual([OLD, []]);
  });

  test('what dnsmasq does not take never stands in its folder', async () => {
    const world = await new DnsmasqWorld().running();
    world.dnsmasq.refused.set('10.0.0.2', 'dnsmasq --test: bad address at line 1 of the new file');
    expect(await world.push(NEW)).toBe('ERROR dnsmasq.refused: dnsmasq --test: bad address at line 1 of the new file');
    expect([world.dnsmasq.text(), world.units.restarts]).toEqual([OLD, []]);
  });

  test('a machine without the service, or without systemd, is not touched', async () => {
    const world = new InstructionWorld();
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    process.deliver('UPDATE_DNSMASQ', 't1', { fileContents: NEW });
    await process.settle(SETTLE_MS);
    world.units.remove();
    process.deliver('UPDATE_DNSMASQ', 't2', { fileContents: NEW });
    await process.settle(SETTLE_MS);
    expect(session.dump()).toBe(`t1 ERROR dnsmasq.unusable: this machine has no dnsmasq.service
t2 ERROR service.unmanaged: systemd does not run here`);
    expect(world.dnsmasq.text()).toBeUndefined();
  });

  test.each<[string, StartResult, string]>([
    ['is refused by the unit', { refuses: 'Job failed' }, 'service.failed: systemctl restart dnsmasq.service: Job failed'],
    ['ends at once', { endsAfterMs: 0 }, 'it is failed (failed) after the restart'],
    ['ends within 2 s', { endsAfterMs: 1_999 }, 'it is failed (failed) soon after the restart'],
    ['is started again and again', { endsAfterMs: 500, again: true }, 'it ended soon after the restart and was started again'],
  ])('a file that %s: the former one is back and served', async (_, result, why) => {
    const world = await new DnsmasqWorld().running();
    world.starts.set(NEW, result);
    expect(await world.push(NEW)).toBe(`ERROR dnsmasq.failed: ${why}; the former file is back and dnsmasq runs on that`);
    expect([world.dnsmasq.text(), world.loaded, world.units.restarts.length]).toEqual([OLD, OLD, 2]);
    // Nothing of it is taken for served afterwards.
    world.starts.clear();
    expect(await world.push(NEW, 't2')).toBe(done);
    expect(world.loaded).toBe(NEW);
  });

  test('where there was no file there is none again', async () => {
    const world = await new DnsmasqWorld('none').running();
    world.starts.set(NEW, { refuses: 'Job failed' });
    expect(await world.push(NEW)).toContain('; there is no file again and dnsmasq runs on that');
    expect([world.dnsmasq.text(), world.loaded]).toEqual([undefined, '']);
  });

  test('a way back that fails as well is told, and taken again by the next', async () => {
    const world = await new DnsmasqWorld().running();
    world.starts.set(NEW, { refuses: 'no' }).set(OLD, { refuses: 'not even this' });
    expect(await world.push(NEW)).toMatch(/: no; the former file is back, and with that: service.failed: .*: not even this$/);
    expect(world.dnsmasq.text()).toBe(OLD);
    const other = 'address=/b.example/10.0.0.3\n';
    world.starts.clear();
    world.starts.set(other, { refuses: 'no' });
    expect(await world.push(other, 't2')).toContain('the former file is back and dnsmasq runs on that');
    expect(world.loaded).toBe(OLD);
  });

  test('a disk that takes no file leaves everything as it was', async () => {
    const world = await new DnsmasqWorld().running();
    world.dnsmasq.failNext('place', 'runos.conf cannot be written: ENOSPC');
    expect(await world.push(NEW)).toBe('ERROR dnsmasq.unusable: runos.conf cannot be written: ENOSPC');
    expect([world.dnsmasq.text(), world.loaded, world.units.restarts]).toEqual([OLD, OLD, []]);
  });

  test('cancelled once the file is in place, it still goes to its end', async () => {
    const world = await new DnsmasqWorld().running();
    world.starts.set(NEW, { endsAfterMs: 1_000 });
    const process = await world.start();
    process.connect(acknowledging(process));
    process.deliver('UPDATE_DNSMASQ', 't1', { fileContents: NEW });
    await process.settle(10);
    expect(world.dnsmasq.text()).toBe(NEW);
    process.deliver('CANCEL', 't2', { tag: 't1' });
    await process.settle(SETTLE_MS * 3);
    expect([world.dnsmasq.text(), world.loaded]).toEqual([OLD, OLD]);
  });
});

describe('A8: the same content again', () => {
  test('is acknowledged without a restart', async () => {
    const world = await new DnsmasqWorld().running();
    await world.push(NEW);
    expect(await world.push(NEW, 't2')).toBe(done);
    expect(world.units.restarts).toHaveLength(1);
  });

  test('is served anew when somebody wrote the file, or the unit ended', async () => {
    const world = await new DnsmasqWorld().running();
    await world.push(NEW);
    world.dnsmasq.write(NEW);
    await world.push(NEW, 't2');
    expect(world.units.restarts).toHaveLength(2);
    world.units.install(DNSMASQ_UNIT);
    await world.push(NEW, 't3');
    expect(world.units.restarts).toHaveLength(3);
  });

  test('what was served before another was is served anew', async () => {
    const world = await new DnsmasqWorld().running();
    for (const [tag, contents] of Object.entries({ t1: NEW, t2: OLD, t3: NEW })) {
      expect(await world.push(contents, tag)).toBe(done);
      expect(world.loaded).toBe(contents);
    }
  });
});

/** A port whose n-th call in all is the last of its process, which dies before it or after it. */
function mortal<T extends object>(port: T, life: { calls: number; readonly after: boolean }): T {
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        life.calls -= 1;
        if (life.calls < 0 || (life.calls === 0 && !life.after)) return new Promise(() => {});
        const result: unknown = await Reflect.apply(value, target, args);
        return life.calls === 0 ? new Promise(() => {}) : result;
      };
    },
  });
}

describe('kill -9 at any call of a port', () => {
  const deaths = Array.from({ length: 32 }, (_, at) => [1 + Math.floor(at / 2), at % 2 === 1] as const);

  async function killed(contents: string, at: number, after: boolean, starts: ReadonlyMap<string, StartResult>) {
    const world = await new DnsmasqWorld().running();
    for (const [text, result] of starts) world.starts.set(text, result);
    const life = { calls: at, after };
    const dnsmasq = new DnsmasqEffect({
      ...{ config: mortal(world.dnsmasq, life), units: mortal(world.units, life), clock: world.clock, boot: 'boot-1' },
      sha256,
    });
    const process = await world.start({ effects: { ...world.effects(), dnsmasq } });
    process.connect(acknowledging(process));
    process.deliver('UPDATE_DNSMASQ', 't1', { fileContents: contents });
    await process.settle(SETTLE_MS * 3);
    process.journal.cut(() => 'before');
    process.drop();
    return world;
  }

  test.each(deaths)(
    'test 9: at call %i (its effect happened: %s), the next process serves it, and so does the same pushed again',
    async (at, after) => {
      const world = await killed(NEW, at, after, new Map());
      const next = await world.start();
      const session = next.connect(acknowledging(next));
      await next.settle(SETTLE_MS * 3);
      const answers = session.of('t1').map((message) => `${message.type} ${contentOf(message)}`);
      // Its reply had gone out before, or comes from the second attempt.
      expect([[], [done]]).toContainEqual(answers);
      expect(world.loaded).toBe(NEW);
      next.drop();
      expect(await world.push(NEW, 't2', next)).toBe(done);
      expect([world.loaded, world.dnsmasq.text()]).toEqual([NEW, NEW]);
    },
  );

  test.each(deaths)(
    'at call %i (its effect happened: %s) of one that cannot be served: the former is back and served',
    async (at, after) => {
      const world = await killed(NEW, at, after, new Map<string, StartResult>([[NEW, { endsAfterMs: 100 }]]));
      const next = await world.start();
      next.connect(acknowledging(next));
      await next.settle(SETTLE_MS * 6);
      expect([world.dnsmasq.text(), world.loaded]).toEqual([OLD, OLD]);
    },
  );

  test('A7: a second death is final, and the same content pushed again is served', async () => {
    const world = await killed(NEW, 7, true, new Map());
    const life = { calls: 6, after: false };
    const units = mortal(world.units, life);
    const dnsmasq = new DnsmasqEffect({ config: world.dnsmasq, units, clock: world.clock, sha256, boot: 'boot-1' });
    const second = await world.start({ effects: { ...world.effects(), dnsmasq } });
    second.connect(acknowledging(second));
    await second.settle(100);
    second.journal.cut(() => 'before');
    second.drop();
    const third = await world.start();
    const session = third.connect(acknowledging(third));
    await third.settle(SETTLE_MS * 3);
    expect(session.sent.map(contentOf)).toEqual([
      `INTERRUPTED (attempt 2): it had reached: placing ${sha256(NEW)}; it may have taken effect, and no repeat of this tag runs`,
    ]);
    third.drop();
    expect(await world.push(NEW, 't2', third)).toBe(done);
    expect(world.loaded).toBe(NEW);
  });
});
