import { afterEach, describe, expect, test } from 'vitest';
import type { NodelogEntry } from '../../src/domain/link/calls.js';
import type { NodewardCalls } from '../../src/ports/link/nodeward-calls.js';

export interface NodewardCallsUnderTest {
  readonly calls: NodewardCalls;
  /** What the control plane was told, as `name JSON`. */
  told(): readonly string[];
  /** Every call is refused from now on. */
  refuse(): void;
  /** The control plane is gone. */
  goAway(): Promise<void>;
  dispose(): Promise<void>;
}

const signal = AbortSignal.timeout(60_000);
const entry: NodelogEntry = { type: 't', severity: 'warning', message: 'm', code: 'c', cause: 'y', remedy: 'r', docsUrl: '' };
const peer = { pubKey: 'own', endpointIp: '', ip: '10.1.0.9', extraAllowedIps: [] };

/** Every NodewardCalls must pass, against a control plane with one other node. */
export function nodewardCallsContract(name: string, make: () => Promise<NodewardCallsUnderTest>): void {
  describe(`NodewardCalls: ${name}`, () => {
    const made: NodewardCallsUnderTest[] = [];
    const given = async () => {
      const subject = await make();
      made.push(subject);
      return subject;
    };
    afterEach(async () => {
      for (const { dispose } of made.splice(0)) await dispose();
    });

    test('asks and gets answers', async () => {
      const { calls } = await given();
      expect(await calls.controlPlaneNodes({ signal })).toEqual([{ vpnIp: '10.1.0.1', kubeEndpoint: 'https://10.1.0.1:6443' }]);
      expect(await calls.manualSync(peer, true, { signal })).toEqual({
        peers: [{ pubKey: 'key', endpointIp: '', ip: '10.1.0.2', extraAllowedIps: ['10.9.0.0/16'] }],
        address: '10.1.0.1/16',
      });
      expect(await calls.regenerateCertificate(Buffer.from([0x30]), { signal })).toEqual({
        privateKey: '',
        certificate: 'a certificate',
        ca: 'a root',
      });
    });

    test('tells', async () => {
      const { calls, told } = await given();
      await calls.updateStatus('READY', { signal });
      await calls.addNodelog(entry, { signal });
      await calls.uploadReply({ type: 'X', tag: 't1', jsonB64: 'A'.repeat(300_000) }, { signal });
      await calls.uploadReply({ type: 'ERROR', tag: 't2', jsonB64: '' }, { signal });
      expect(told()).toEqual([
        'updateStatus {"status":"READY"}',
        'addNodelog {"severity":"warning","type":"t","message":"m","code":"c","cause":"y","remedy":"r","docsUrl":""}',
        'uploaded {"tag":"t1","type":"X","length":300000}',
        'uploaded {"tag":"t2","type":"ERROR","length":0}',
      ]);
    });

    test('there is no list to install by unless the control plane has one, and it says so', async () => {
      const { calls } = await given();
      await expect(calls.installCommands({ signal })).rejects.toMatchObject({
        code: 'link.refused',
        facts: { problem: expect.stringMatching(/^no install plan is configured/) },
      });
    });

    test('what is refused is an error', async () => {
      const { calls, refuse } = await given();
      refuse();
      await expect(calls.updateStatus('READY', { signal })).rejects.toMatchObject({ code: 'link.refused' });
    });

    test('more than 12 MiB are not uploaded', async () => {
      const { calls } = await given();
      const reply = { type: 'X', tag: 't', jsonB64: 'A'.repeat(12 * 1024 * 1024 + 1) };
      await expect(calls.uploadReply(reply, { signal })).rejects.toMatchObject({ code: 'link.too_large' });
    });

    test('a control plane that is gone, and an abort', async () => {
      const { calls, goAway } = await given();
      const reason = new Error('enough');
      await expect(calls.updateStatus('READY', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      await goAway();
      await expect(calls.controlPlaneNodes({ signal })).rejects.toMatchObject({ code: 'link.unreachable' });
      await expect(calls.installCommands({ signal })).rejects.toMatchObject({ code: 'link.unreachable' });
    });
  });
}
