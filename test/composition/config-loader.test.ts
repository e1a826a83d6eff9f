import { describe, expect, test } from 'vitest';
import { ConfigLoader } from '../../src/composition/config-loader.js';
import type { Config, Setting } from '../../src/domain/config/model.js';
import { FakeConfigSource } from '../fakes/fake-config-source.js';
import { FakeLogger } from '../fakes/fake-logger.js';

const options = { signal: new AbortController().signal };

function setUp({
  env = {},
  flags = {},
}: {
  readonly env?: NodeJS.ProcessEnv;
  readonly flags?: Partial<Record<Setting, string>>;
} = {}) {
  const source = new FakeConfigSource();
  const logger = new FakeLogger();
  const loader = new ConfigLoader({ mode: 'dev', source, env, flags });
  const used: [Config, readonly Setting[]][] = [];
  const reload = (signal = options.signal) =>
    loader.reload((config, changed) => used.push([config, changed]), logger, { signal });
  return { source, logger, loader, used, reload };
}

describe('the first load', () => {
  test('of no file is the defaults', async () => {
    const { loader } = setUp();
    expect(await loader.load(options)).toMatchObject({ config: { logLevel: 'info', threads: 'auto' }, warnings: [] });
  });

  test('a variable is over the file and a flag over both; a mistyped one is told', async () => {
    const { loader, source } = setUp({
      env: { HOLDFAST_LOG_LEVEL: 'warn', HOLDFAST_OUTBOX_CAPACITY: '7', HOLDFAST_THREADS: '2' },
      flags: { logLevel: 'error' },
    });
    source.write({ logLevel: 'debug', outbox: { capacity: 5 }, readyTimeout: '1s' });
    const { config, warnings } = await loader.load(options);
    expect(config).toMatchObject({ logLevel: 'error', outboxCapacity: 7, readyTimeoutMs: 1_000 });
    expect(warnings).toEqual(['unknown environment variable HOLDFAST_THREADS is not used']);
  });

  test('of a wrong configuration tells every problem, and a mistyped variable as well', async () => {
    const { loader, source } = setUp({ env: { HOLDFAST_LOG_LEVL: 'debug' } });
    source.write({ logLevl: 'debug' });
    await expect(loader.load(options)).rejects.toMatchObject({
      code: 'config.invalid',
      message: [
        'config.invalid: holdfast.yaml: logLevl: unknown key, did you mean logLevel?',
        '  unknown environment variable HOLDFAST_LOG_LEVL is not used, did you mean HOLDFAST_LOG_LEVEL?',
      ].join('\n'),
    });
  });
});

describe('a reload', () => {
  test('before the first load does nothing', async () => {
    const { used, reload, logger } = setUp();
    await reload();
    expect([used, logger.dump()]).toEqual([[], '']);
  });

  test('takes what is live, tells the rest, and keeps flags', async () => {
    const { loader, source, used, reload, logger } = setUp({ flags: { readyTimeoutMs: '5s' } });
    source.write({ logLevel: 'info' });
    const { config } = await loader.load(options);
    source.write({ logLevel: 'debug', readyTimeout: '9s', dataplane: { threads: 3, connectTimeout: '1s' }, nodeName: 'b' });
    await reload();
    expect(used).toEqual([[{ ...config, logLevel: 'debug', connectTimeoutMs: 1_000 }, ['logLevel', 'connectTimeoutMs']]]);
    expect(logger.dump()).toBe(
      [
        'warn dataplane.threads changed; it takes effect after a restart',
        'warn nodeName changed; only a node without an identity reads it',
        'info configuration read again',
      ].join('\n'),
    );
  });

  test('of a file with mistakes changes nothing; the next one counts from what is in use', async () => {
    const { loader, source, used, reload, logger } = setUp();
    await loader.load(options);
    source.write({ logLevel: 'loud' });
    await reload();
    source.spoil('is a directory');
    await reload();
    expect(used).toEqual([]);
    expect(logger.dump('error')).toMatch(
      /^error the old configuration stays in use: .*found "loud"\nerror the old .*is a directory$/,
    );
    source.write({ logLevel: 'warn' });
    await reload();
    expect(used.map(([{ logLevel }, changed]) => [logLevel, changed])).toEqual([['warn', ['logLevel']]]);
  });

  test('several at once are one after the other, and each is against the one before', async () => {
    const { loader, source, used, reload } = setUp();
    await loader.load(options);
    source.write({ logLevel: 'debug' });
    await Promise.all([reload(), reload(), reload()]);
    expect(used.map(([, changed]) => changed)).toEqual([['logLevel'], [], []]);
  });

  test('that is aborted is quiet; one whose use throws is told, and does not stop the next', async () => {
    const { loader, source, logger, used, reload } = setUp();
    await loader.load(options);
    await reload(AbortSignal.abort());
    expect(logger.dump()).toBe('');
    const failing = () => {
      throw new Error('a bug');
    };
    await loader.reload(failing, logger, options);
    expect(logger.dump()).toBe('error the configuration could not be read again');
    source.write({ logLevel: 'debug' });
    await reload();
    expect(used).toHaveLength(1);
  });
});
