import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { nameServers } from '../../src/domain/loadbalancer/names.js';
import { renderConfig } from '../../src/domain/loadbalancer/render.js';
import type { BalancerConfig } from '../../src/ports/loadbalancer/balancer-config.js';
import { endpoint } from '../support/endpoint.js';

const options = { signal: new AbortController().signal };
const servers = nameServers(['10.0.0.1', '[fd00::1]:7443', 'cp.invalid'].map(endpoint), [], []);
const settings = { port: 6_446, socket: '/run/haproxy/admin.sock', hasIpv6: true, requestSeconds: 60 };
const { text } = renderConfig(servers, settings, (given) => hash('sha256', given, 'hex'));

export interface BalancerConfigRig {
  readonly config: BalancerConfig;
  /** The next process on the same disk. */
  readonly reopened: () => BalancerConfig;
}

/** Every BalancerConfig must pass. */
export function balancerConfigContract(name: string, make: () => Promise<BalancerConfigRig>): void {
  describe(`BalancerConfig: ${name}`, () => {
    test('what is placed stands there for the next process, whole', async () => {
      const { config, reopened } = await make();
      expect(await config.read(options)).toBeUndefined();
      await config.place(text, options);
      await config.place(text, options);
      expect(await reopened().read(options)).toBe(text);
      await config.place('global\n', options);
      expect(await reopened().read(options)).toBe('global\n');
    });

    test('HAProxy takes what is rendered, of addresses and names, or says why not; nothing is placed', async () => {
      const { config } = await make();
      expect(await config.test(text, options)).toBeUndefined();
      expect(await config.test(text.replace('mode tcp', 'mode bogus'), options)).toMatch(/^haproxy -c: .*bogus/s);
      expect(await config.read(options)).toBeUndefined();
    });

    test('what is remembered is so for the next process', async () => {
      const { config, reopened } = await make();
      expect(await config.remembered(options)).toBeUndefined();
      await config.remember(servers, options);
      expect(await reopened().remembered(options)).toEqual(servers);
      await config.remember(servers.slice(1), options);
      expect(await reopened().remembered(options)).toEqual(servers.slice(1));
    });

    test('aborted calls reject and change nothing', async () => {
      const { config } = await make();
      const aborted = { signal: AbortSignal.abort() };
      await expect(config.place(text, aborted)).rejects.toThrow();
      await expect(config.remember(servers, aborted)).rejects.toThrow();
      await expect(config.test(text, aborted)).rejects.toThrow();
      await expect(config.read(aborted)).rejects.toThrow();
      expect([await config.read(options), await config.remembered(options)]).toEqual([undefined, undefined]);
    });
  });
}
