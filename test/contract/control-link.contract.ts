import { afterEach, describe, expect, test } from 'vitest';
import type { AgentFacts, LinkMessage, ServerFacts, ServerMessage } from '../../src/domain/link/model.js';
import type { ControlLink, LinkAddress, LinkStream } from '../../src/ports/link/control-link.js';
import { eventually } from '../support/eventually.js';

export interface ControlLinkUnderTest {
  readonly link: ControlLink;
  /** Where a server is. */
  readonly address: LinkAddress;
  /** Where none is. */
  readonly nowhere: LinkAddress;
  /** What that server says in its headers. */
  readonly server: ServerFacts;
  /** On the newest stream. */
  say(...messages: readonly ServerMessage[]): void;
  /** What the newest stream has brought. */
  heard(): readonly LinkMessage[];
  agent(): AgentFacts | undefined;
  endStream(retryMs: number | undefined): void;
  kill(): Promise<void>;
  dispose(): Promise<void>;
}

const signal = AbortSignal.timeout(60_000);
const facts: AgentFacts = {
  instance: 'i1',
  session: 1,
  boot: 'b1',
  hardware: 'h1',
  journal: { id: 'j1', counter: 1n },
  capabilities: new Set(['journal']),
};
const message = (tag: string): LinkMessage => ({ type: 'GET_NODE_STATUS', tag, jsonB64: 'e30=' });

async function take(stream: LinkStream, count: number): Promise<readonly string[]> {
  const tags: string[] = [];
  for await (const { tag } of stream.messages) if (tags.push(tag) === count) break;
  return tags;
}

/** Every ControlLink must pass. */
export function controlLinkContract(name: string, make: () => Promise<ControlLinkUnderTest>): void {
  describe(`ControlLink: ${name}`, () => {
    const made: ControlLinkUnderTest[] = [];
    const given = async () => {
      const subject = await make();
      made.push(subject);
      return subject;
    };
    afterEach(async () => {
      for (const { link, dispose } of made.splice(0)) {
        await link.close();
        await dispose();
      }
    });

    test('facts go both ways', async () => {
      const { link, address, server, agent } = await given();
      const stream = await link.open(address, facts, { signal });
      expect(await stream.server).toEqual(server);
      expect(agent()).toEqual(facts);
      expect(stream.localAddress()).not.toBe('');
    });

    test('messages go both ways, each once and in order', async () => {
      const { link, address, say, heard } = await given();
      const stream = await link.open(address, facts, { signal });
      await stream.server;
      const sent = await Promise.all(['a', 'b', 'c'].map((tag) => stream.send(message(tag), { signal })));
      expect(sent).toEqual([true, true, true]);
      await eventually(() => heard().map(({ tag }) => tag)).toEqual(['a', 'b', 'c']);
      say(message('x'), message('y'));
      expect(await take(stream, 2)).toEqual(['x', 'y']);
    });

    test('where nobody is, it says so', async () => {
      const { link, nowhere } = await given();
      await expect(link.open(nowhere, facts, { signal })).rejects.toMatchObject({ code: 'link.unreachable' });
    });

    test('an abort rejects with its reason', async () => {
      const { link, address } = await given();
      const reason = new Error('enough');
      await expect(link.open(address, facts, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      const stream = await link.open(address, facts, { signal });
      await expect(stream.send(message('a'), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    });

    test('close ends it at once, also twice; nothing is sent or comes out any more', async () => {
      const { link, address } = await given();
      const stream = await link.open(address, facts, { signal });
      await stream.server;
      stream.close();
      stream.close();
      expect(await stream.ended).toEqual({ what: 'closed', error: undefined, retryMs: undefined });
      expect(await stream.send(message('late'), { signal })).toBe(false);
      expect(await take(stream, 1)).toEqual([]);
    });

    test('the server ends it, and says when to come back; the next one works', async () => {
      const { link, address, endStream, server } = await given();
      const stream = await link.open(address, facts, { signal });
      await stream.server;
      endStream(1_234);
      expect(await stream.ended).toMatchObject({ what: 'stream', retryMs: 1_234 });
      expect(await take(stream, 1)).toEqual([]);
      expect(await (await link.open(address, { ...facts, session: 2 }, { signal })).server).toEqual(server);
    });

    test('a connection that dies is told from a stream that ends', async () => {
      const { link, address, kill } = await given();
      const stream = await link.open(address, facts, { signal });
      await stream.server;
      await kill();
      expect(await stream.ended).toMatchObject({ what: 'connection', error: { code: 'link.unreachable' } });
      await expect(link.open(address, facts, { signal })).rejects.toMatchObject({ code: 'link.unreachable' });
    });

    test('closing the link ends its streams', async () => {
      const { link, address } = await given();
      const stream = await link.open(address, facts, { signal });
      await stream.server;
      await link.close();
      await link.close();
      await stream.ended;
      expect(await stream.send(message('late'), { signal })).toBe(false);
    });
  });
}
